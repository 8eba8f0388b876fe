"""The OpenAPI document, finished: problems have their media type, texts their language, payloads their schemas."""

from typing import Any

from django.utils.functional import Promise
from django.utils.translation import gettext, gettext_noop

from jobs.api.problems import MEDIA_TYPE
from jobs.api.schemas_out import ProblemOut
from jobs.conf import conf
from jobs.registry import catalogue

DESCRIPTION = gettext_noop(
    "Enqueue, follow, cancel and repair background jobs. Send the access key as X-Turno-Key. Errors are Problem "
    "Details (RFC 9457) in the language of Accept-Language. Invalid data is 400, with messages by field."
)
WORDS = frozenset({"description", "summary"})

PROBLEM = ProblemOut
# What any operation may answer besides its own statuses: access, refused input, too many wrong keys, an unexpected
# fault, a database that is away.
COMMON = {400: PROBLEM, 401: PROBLEM, 403: PROBLEM, 429: PROBLEM, 500: PROBLEM, 503: PROBLEM}
BODY = {413: PROBLEM, 415: PROBLEM}
MISSING = {404: PROBLEM}
CONFLICT = {409: PROBLEM}


def translated(value: Any) -> Any:
    """The same document or schema with its texts in the active language; example payloads stay as they are."""
    if isinstance(value, dict):
        return {
            key: gettext(str(item)) if key in WORDS and isinstance(item, (str, Promise)) and item else translated(item)
            for key, item in value.items()
        }
    if isinstance(value, list):
        return [translated(item) for item in value]
    return str(value) if isinstance(value, Promise) else value


def _hoisted(schema: Any, prefix: str) -> Any:
    """A schema whose references to its own `$defs` point at the document's components."""
    if isinstance(schema, dict):
        return {
            key: f"#/components/schemas/{prefix}{item.removeprefix('#/$defs/')}"
            if key == "$ref" and isinstance(item, str)
            else _hoisted(item, prefix)
            for key, item in schema.items()
            if key != "$defs"
        }
    return [_hoisted(item, prefix) for item in schema] if isinstance(schema, list) else schema


def _with_payloads(schemas: dict[str, Any]) -> None:
    """Says of JobIn which types there are, and what each one's payload holds."""
    job = schemas.get("JobIn")
    types = catalogue.types()
    if job is None or not types or conf().api.unknown_types != "refuse":
        return
    branches = []
    for job_type in types:
        schema, prefix = job_type.schema(), f"{job_type.name}-"
        for name, nested in schema.get("$defs", {}).items():
            schemas[prefix + name] = _hoisted(nested, prefix)
        schemas[f"{job_type.name}-payload"] = _hoisted(schema, prefix)
        branch: dict[str, Any] = {
            "title": job_type.name,
            "properties": {
                "type": {"const": job_type.name},
                "payload": {"$ref": f"#/components/schemas/{job_type.name}-payload"},
            },
        }
        if schema.get("required"):
            branch["required"] = ["payload"]
        branches.append(branch)
    job["properties"]["type"]["enum"] = [job_type.name for job_type in types]
    job["anyOf"] = branches
    job["not"] = {
        "properties": {"run_at": {"type": "string"}, "delay": {"type": ["number", "string"]}},
        "required": ["run_at", "delay"],
    }


def finished(document: dict[str, Any]) -> dict[str, Any]:
    """What ninja made, completed."""
    made: dict[str, Any] = dict(document)
    _with_payloads(made["components"]["schemas"])
    made = translated(made)
    for operations in made["paths"].values():
        for operation in operations.values():
            for status, answer in operation["responses"].items():
                content = answer.get("content", {})
                if int(status) >= 400 and "application/json" in content:
                    answer["content"] = {MEDIA_TYPE: content["application/json"]}
    return made
