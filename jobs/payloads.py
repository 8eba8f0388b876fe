"""Payloads against their Pydantic model, and Pydantic's errors as messages by field in the reader's language.

Unknown fields are refused, in nested models too, whether or not the model says so; only a payload model that
says `extra="allow"` itself keeps them. Validation is that of JSON, as the payload is stored: a list for a
tuple, text for a datetime, also where a model is strict.
"""

import logging
from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any, Literal

import orjson
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from pydantic import BaseModel, ValidationError
from pydantic_core import to_json

from jobs.errors import Invalid, Text

logger = logging.getLogger(__name__)
FOREIGN = orjson.OPT_PASSTHROUGH_DATACLASS | orjson.OPT_PASSTHROUGH_DATETIME | orjson.OPT_PASSTHROUGH_SUBCLASS

# By Pydantic's error type; what is not here is said in Pydantic's own (English) words.
MESSAGES: dict[str, Text] = {
    "missing": _("This field is required."),
    "extra_forbidden": _("There is no such field."),
    "greater_than": _("Expected more than %(gt)s."),
    "greater_than_equal": _("Expected at least %(ge)s."),
    "less_than": _("Expected less than %(lt)s."),
    "less_than_equal": _("Expected at most %(le)s."),
    "multiple_of": _("Expected a multiple of %(multiple_of)s."),
    "finite_number": _("Expected a finite number."),
    "too_short": _("Expected %(min_length)s or more items, got %(actual_length)s."),
    "too_long": _("Expected at most %(max_length)s items, got %(actual_length)s."),
    "string_type": _("Expected text."),
    "string_unicode": _("Expected text in UTF-8."),
    "string_too_short": _("Expected %(min_length)s or more characters."),
    "string_too_long": _("Expected at most %(max_length)s characters."),
    "string_pattern_mismatch": _("Expected text of the form %(pattern)s."),
    "enum": _("Expected one of %(expected)s."),
    "literal_error": _("Expected one of %(expected)s."),
    "model_type": _("Expected an object."),
    "model_attributes_type": _("Expected an object."),
    "dict_type": _("Expected an object."),
    "list_type": _("Expected a list."),
    "tuple_type": _("Expected a list."),
    "set_type": _("Expected a list."),
    "bool_type": _("Expected true or false."),
    "bool_parsing": _("Expected true or false."),
    "int_type": _("Expected a whole number."),
    "int_parsing": _("Expected a whole number."),
    "int_parsing_size": _("Expected a smaller whole number."),
    "int_from_float": _("Expected a whole number."),
    "float_type": _("Expected a number."),
    "float_parsing": _("Expected a number."),
    "decimal_type": _("Expected a decimal number."),
    "decimal_parsing": _("Expected a decimal number."),
    "date_type": _("Expected a date such as 2026-01-31."),
    "date_parsing": _("Expected a date such as 2026-01-31."),
    "date_from_datetime_parsing": _("Expected a date such as 2026-01-31."),
    "datetime_type": _("Expected an instant such as 2026-01-31T12:00:00Z."),
    "datetime_parsing": _("Expected an instant such as 2026-01-31T12:00:00Z."),
    "datetime_from_date_parsing": _("Expected an instant such as 2026-01-31T12:00:00Z."),
    "timezone_aware": _("Expected an instant with its offset from UTC."),
    "uuid_type": _("Expected a UUID."),
    "uuid_parsing": _("Expected a UUID."),
    "url_type": _("Expected a URL."),
    "url_parsing": _("Expected a URL."),
    "none_required": _("Expected null."),
}


def message(error: Mapping[str, Any], known: list[str] | None = None) -> str:
    """What one of Pydantic's errors says, in the active language; `known` are field names to suggest."""
    kind, context = error["type"], error.get("ctx") or {}
    if kind in {"value_error", "assertion_error"} and context.get("error"):
        return str(context["error"])  # the words of the model's own validator
    if kind == "extra_forbidden" and known:
        near = get_close_matches(str(error["loc"][-1])[:200], known, n=1)
        if near:
            return gettext("There is no such field; did you mean %(name)s?") % {"name": near[0]}
    template = MESSAGES.get(kind)
    try:
        shown = {name: f"{value:g}" if isinstance(value, float) else value for name, value in context.items()}
        return str(template) % shown if template is not None else str(error["msg"])
    except KeyError:  # a context without what the message names
        return str(error["msg"])


def field_errors(
    error: ValidationError, prefix: str = "", model: type[BaseModel] | None = None
) -> dict[str, list[Text]]:
    """Messages by dotted field name ("payload.rows") below `prefix`; `model` allows suggestions."""
    found: dict[str, list[Text]] = {}
    known = [field.alias or name for name, field in model.model_fields.items()] if model else []
    for item in error.errors(include_url=False, include_input=False):
        path = [str(part)[:200] for part in item["loc"]]
        name = ".".join([prefix, *path] if prefix else path) or "payload"
        found.setdefault(name, []).append(message(item, known if len(path) == 1 else None))
    return found


def _json(payload: Any) -> bytes:
    """Its JSON; of values that are not JSON's own, and of what is too large or too deep for orjson, Pydantic's."""
    try:
        return orjson.dumps(payload, option=FOREIGN)
    except TypeError:
        return to_json(payload)


def parse(model: type[BaseModel], payload: Any) -> BaseModel:
    """`payload` as an instance of `model`. Raises Invalid, with the errors by field below "payload"."""
    extra: Literal["forbid"] | None = None if model.model_config.get("extra") == "allow" else "forbid"
    try:
        return model.model_validate_json(_json(payload), extra=extra)
    except ValidationError as error:
        errors = field_errors(error, "payload", model)
    except ValueError:  # not JSON at all, text that UTF-8 has no form for, too deep
        errors = {"payload": [gettext("Expected JSON.")]}
    except Exception as error:
        # A fault in the model's own validator must not become a fault of whoever sent the payload.
        logger.exception("the validation of %s failed by itself", model.__name__)
        errors = {"payload": [gettext("It could not be checked: %(error)s.") % {"error": type(error).__name__}]}
    raise Invalid(_("The payload does not fit this job type."), errors=errors)


def parse_object(payload: Any, *, empty: bool) -> dict[str, Any]:
    """`payload` as a plain object, for a handler without a model; `empty` allows no field. Raises Invalid."""
    if not isinstance(payload, dict):
        raise Invalid(
            _("The payload does not fit this job type."), errors={"payload": [gettext("Expected an object.")]}
        )
    if empty and payload:
        errors = {f"payload.{str(name)[:200]}": [gettext("There is no such field.")] for name in payload}
        raise Invalid(_("This job type takes no payload."), errors=errors)
    return payload
