"""What is wrong with the configuration, as sentences: the key, where it was set, what was expected, what stands there.

No sentence shows a secret, nor a whole table or list, in which one may stand.
"""

from collections.abc import Iterable, Iterator, Mapping
from difflib import get_close_matches
from typing import Any, get_args

from pydantic import BaseModel
from pydantic_core import ErrorDetails

from jobs.conf_sources import PREFIX, Sources, variable
from jobs.sections import is_secret
from jobs.speech import _, gettext_noop

# Variables that are ours and are not settings: the files' names, what a process is told of itself, the tests' servers.
RESERVED = {"TURNO_CONFIG", "TURNO_PROCESS", "TURNO_LANG"}
RESERVED |= {"TURNO_WORKER_ID", "TURNO_SUPERVISOR_FD", "TURNO_CHILD"}  # (workers.protocol)
RESERVED_PREFIXES = ("TURNO_TEST_",)


# What was expected, by Pydantic's type of error; where none is given its own words are shown.
EXPECTED = {
    "int_parsing": gettext_noop("expected a whole number"),
    "int_parsing_size": gettext_noop("expected a whole number"),
    "int_type": gettext_noop("expected a whole number"),
    "int_from_float": gettext_noop("expected a whole number"),
    "float_parsing": gettext_noop("expected a number"),
    "float_type": gettext_noop("expected a number"),
    "bool_parsing": gettext_noop("expected true or false"),
    "bool_type": gettext_noop("expected true or false"),
    "string_type": gettext_noop("expected text"),
    "string_too_short": gettext_noop("expected {min_length} or more characters"),
    "string_pattern_mismatch": gettext_noop("expected text of the form {pattern}"),
    "greater_than": gettext_noop("expected more than {gt}"),
    "greater_than_equal": gettext_noop("expected at least {ge}"),
    "less_than_equal": gettext_noop("expected at most {le}"),
    "literal_error": gettext_noop("expected one of {expected}"),
    "model_type": gettext_noop("expected a table of keys"),
    "dict_type": gettext_noop("expected a table of keys"),
    "tuple_type": gettext_noop("expected a list"),
}


def unknown_variables(model: type[BaseModel], sources: Sources) -> Iterator[str]:
    """A sentence a variable that names no section, or a section and no key of it."""
    by_letters = {name.replace("_", ""): name for name in map(variable, _keys(model))}
    for upper, name in sorted(sources.environment.items()):
        if not upper.startswith(PREFIX) or upper in RESERVED or upper.startswith(RESERVED_PREFIXES):
            continue
        head, _two, rest = upper.removeprefix(PREFIX).partition("__")
        field = model.model_fields.get(head.lower())
        if field is None:
            exact = by_letters.get(upper.replace("_", ""))  # one underscore where two belong
            section = _nearest(head.lower(), model.model_fields)
            meant = exact or (variable((section, rest) if rest else (section,)) if section else None)
            yield _("{name}: there is no such section").format(name=name) + _did_you_mean(meant)
        elif _model_of(field.annotation) and not rest:
            yield _("{name}: a section is not a setting; expected {variable}__KEY").format(
                name=name, variable=variable((head,))
            )


def sentence(error: ErrorDetails, model: type[BaseModel], sources: Sources) -> str:
    """One problem that Pydantic found."""
    location = tuple(part for part in error["loc"] if part != "[key]")
    section, key = _section_of(model, location), location[-1] if location else None
    path = ".".join(str(part) for part in location) or _("settings")
    origin = sources.origin(location)
    by_variable = origin is not None and origin.upper() == variable(location)
    name = path if origin is None else origin if by_variable else f"{path} ({origin})"
    if error["type"] == "extra_forbidden":
        meant = _nearest(str(key), section.model_fields if section else ())
        if meant and by_variable:
            meant = variable((*location[:-1], meant))
        return _("{name}: there is no such key").format(name=name) + _did_you_mean(meant)
    if section is not None and is_secret(section, key):
        shown = _("; the value is not shown")
    elif "://" in str(error["input"]) or isinstance(error["input"], (Mapping, list, tuple)):
        shown = ""  # an address has a password, a table may hold anything
    elif error["type"] == "model_type":
        shown = ""
    else:
        shown = _("; got {value}").format(value=repr(error["input"])[:80])
    return f"{name}: {_expected(error)}{shown}"


def _expected(error: ErrorDetails) -> str:
    if error["type"] in EXPECTED:
        return _(EXPECTED[error["type"]]).format(**error.get("ctx", {}))
    return str(error["msg"]).removeprefix("Value error, ")


def _nearest(name: str, known: Iterable[str]) -> str | None:
    return next(iter(get_close_matches(name, list(known), n=1)), None)


def _did_you_mean(name: str | None) -> str:
    return _("; did you mean {name}?").format(name=name) if name else ""


def _model_of(annotation: Any) -> type[BaseModel] | None:
    """The section that an annotation holds: itself, or the values of a dict of sections."""
    candidates = [annotation, *get_args(annotation)]
    return next((c for c in candidates if isinstance(c, type) and issubclass(c, BaseModel)), None)


def _section_of(model: type[BaseModel], location: tuple[Any, ...]) -> type[BaseModel] | None:
    """The section in which the last part of a location stands; None where it stands in none."""
    section: type[BaseModel] | None = model
    parts = list(location[:-1])
    while parts and section is not None:
        field = section.model_fields.get(str(parts.pop(0)))
        annotation = field.annotation if field else None
        section = _model_of(annotation)
        if section is not None and section is not annotation and parts:
            parts.pop(0)  # the key of a dict of sections
        elif section is not None and section is not annotation:
            return None
    return section


def _keys(model: type[BaseModel], above: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    for name, field in model.model_fields.items():
        here = (*above, name)
        inner = field.annotation if isinstance(field.annotation, type) else None
        if inner is not None and issubclass(inner, BaseModel):
            yield from _keys(inner, here)
        else:
            yield here
