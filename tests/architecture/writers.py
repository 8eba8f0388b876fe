"""Finds who writes the tables that hold a job's state: by SQL text, or through the ORM's model."""

import ast
import re
from collections.abc import Iterator

TABLES = "jobs|job_state_changes|job_attempts"
SQL_WRITE = re.compile(
    rf"""\b(insert\s+into|update(\s+only)?|delete\s+from(\s+only)?|merge\s+into|truncate(\s+table)?|copy)\s+
        "?turno"?\."?({TABLES})"?(?![\w])""",
    re.IGNORECASE | re.VERBOSE,
)
MODELS = {"Job", "JobStateChange", "JobAttempt"}
ORM_WRITES = {"save", "create", "update", "delete", "get_or_create", "update_or_create"}
ORM_WRITES |= {"bulk_create", "bulk_update"}
ORM_WRITES |= {f"a{name}" for name in ORM_WRITES}
# `update` and `delete` are names of dicts and sets as well: they count on a chain that began at a manager.
AMBIGUOUS = {"update", "delete", "aupdate", "adelete", "create", "acreate"}


def writes(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Line and reason of each write of a job's state in a file."""
    models = _models(tree)
    for node in ast.walk(tree):
        if (literal := _literal(node)) and (found := SQL_WRITE.search(literal)):
            yield node.lineno, f"SQL that writes: {' '.join(found.group(0).split())}"
        elif models and isinstance(node, ast.Call):
            if isinstance(node.func, ast.Name) and node.func.id in models:
                yield node.lineno, f"makes a {node.func.id}"
            elif isinstance(node.func, ast.Attribute) and node.func.attr in ORM_WRITES:
                managed = _names(node.func.value) & (models | {"objects", "_base_manager", "_default_manager"})
                if managed or node.func.attr not in AMBIGUOUS:
                    yield node.lineno, f"calls {node.func.attr}()"


def _models(tree: ast.AST) -> set[str]:
    """The names under which a file knows the models; `models.Job` counts through its last part."""
    return {
        alias.asname or alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("jobs.models")
        for alias in node.names
        if alias.name in MODELS
    }


def _names(node: ast.AST) -> set[str]:
    found = {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}
    return found | {part.attr for part in ast.walk(node) if isinstance(part, ast.Attribute)}


def _literal(node: ast.AST) -> str | None:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(str(part.value) if isinstance(part, ast.Constant) else "x" for part in node.values)
    return None
