"""What a handler's signature says: function or class, plain or async, and which payload it takes.

Accepted are `(ctx)` and `(ctx, payload)`, the names being free, of a function or of a class's method `run`:

* `(ctx)`: no payload; only an empty object is accepted.
* `(ctx, payload)` without annotation, or annotated `dict`, `dict[str, Any]`, `Mapping` or `Any`: any JSON object.
* `(ctx, payload: Model)`, a Pydantic model: validated, unknown fields refused (`jobs.payloads`).

Parameters after these must have defaults, which they keep. Anything else is a RegistrationError.
"""

import collections.abc
import inspect
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, NoReturn, get_args, get_origin

from pydantic import BaseModel, RootModel

from jobs.errors import TurnoError

POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
OBJECTS = (dict, collections.abc.Mapping, collections.abc.MutableMapping)
EXPECTED = "expected (ctx) or (ctx, payload), where payload is annotated with a Pydantic model or a dict"


class RegistrationError(TurnoError, TypeError):
    """A handler is declared wrongly; the message names the handler, and what was expected."""


@dataclass(frozen=True, slots=True)
class Signature:
    """How a handler is called. `payload_model` is None for any object, and where `takes_payload` is False."""

    is_class: bool
    is_async: bool
    takes_payload: bool
    payload_model: type[BaseModel] | None


def place(target: Any) -> str:
    """Module and qualified name of a handler, for people."""
    return f"{getattr(target, '__module__', '?')}.{getattr(target, '__qualname__', repr(target))}"


def read(target: Any) -> Signature:
    """The signature of a handler. Raises RegistrationError."""
    is_class = inspect.isclass(target)
    if is_class:
        function = _run_method(target)
    elif inspect.isfunction(target):
        function = target
    else:
        _refuse(target, "expected a function or a class with a method run(self, ctx, payload)")
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        _refuse(target, "it is a generator (it contains yield); expected def or async def that returns")
    parameters = _positional(target, function, skip=1 if is_class else 0)
    takes_payload = len(parameters) > 1
    model = _payload_model(target, function, parameters[1]) if takes_payload else None
    return Signature(is_class, inspect.iscoroutinefunction(function), takes_payload, model)


def first_line(target: Any) -> int:
    """The line where the handler's code begins: tells a module that is run again from two handlers of one name."""
    function = inspect.getattr_static(target, "run") if inspect.isclass(target) else target
    line: int = inspect.unwrap(function).__code__.co_firstlineno
    return line


def _refuse(target: Any, problem: str) -> NoReturn:
    raise RegistrationError(f"{place(target)}: {problem}")


def _run_method(target: type) -> Callable[..., Any]:
    run = inspect.getattr_static(target, "run", None)
    if not inspect.isfunction(run):
        _refuse(target, "expected a method run(self, ctx, payload)")
    if inspect.isabstract(target):
        _refuse(target, "it is abstract; expected a class that can be made without arguments")
    try:
        inspect.signature(target).bind()
    except TypeError as error:
        _refuse(target, f"a new one is made for each execution, without arguments ({error})")
    except ValueError:  # a signature that Python can't read is found out when it is called
        pass
    return run


def _signature(function: Callable[..., Any]) -> inspect.Signature:
    if sys.version_info >= (3, 14):
        import annotationlib

        return inspect.signature(function, annotation_format=annotationlib.Format.FORWARDREF)
    return inspect.signature(function)


def _positional(target: Any, function: Callable[..., Any], skip: int) -> list[inspect.Parameter]:
    """The context's parameter and, where there is one, the payload's."""
    signature = _signature(function)
    taken: list[inspect.Parameter] = []
    for parameter in list(signature.parameters.values())[skip:]:
        if parameter.kind in POSITIONAL and len(taken) < 2:
            taken.append(parameter)
        elif parameter.kind in POSITIONAL or parameter.kind is inspect.Parameter.KEYWORD_ONLY:
            if parameter.default is inspect.Parameter.empty:
                _refuse(target, f"parameter {parameter.name!r} would get no value; {EXPECTED}")
        else:
            _refuse(target, f"it takes {parameter}; {EXPECTED}")
    if not taken:
        _refuse(target, f"it takes no context; {EXPECTED}")
    if _is_model(_resolve(target, function, taken[0], strict=False)):
        _refuse(target, f"the first parameter, {taken[0].name!r}, gets the context, not the payload; {EXPECTED}")
    return taken


def _payload_model(target: Any, function: Callable[..., Any], parameter: inspect.Parameter) -> type[BaseModel] | None:
    annotation = _resolve(target, function, parameter, strict=True)
    if annotation is inspect.Parameter.empty or annotation is Any or annotation in OBJECTS:
        return None
    if get_origin(annotation) in OBJECTS and get_args(annotation) in {(str, Any), (str, object)}:
        return None
    shown = getattr(annotation, "__name__", None) or str(annotation)
    if not _is_model(annotation):
        _refuse(target, f"its payload is annotated {shown}; {EXPECTED}")
    model: type[BaseModel] = annotation
    if model is BaseModel or issubclass(model, RootModel):
        _refuse(
            target,
            f"its payload is annotated {shown}; expected a model with fields, since a payload is an object",
        )
    if not model.__pydantic_complete__ and model.model_rebuild(raise_errors=False) is not True:
        _refuse(
            target,
            f"the fields of its payload {shown} name types that are not defined yet; define them before it",
        )
    return model


def _resolve(target: Any, function: Callable[..., Any], parameter: inspect.Parameter, *, strict: bool) -> Any:
    """The annotation as an object, also where it is written as text. With `strict`, unknown names are refused."""
    annotation = parameter.annotation
    if isinstance(annotation, str):
        try:
            annotation = eval(annotation, inspect.unwrap(function).__globals__)  # noqa: S307  (source code)
        except Exception as error:  # noqa: BLE001  (whatever is wrong with it, the message says)
            if strict:
                _refuse(
                    target,
                    f"its payload is annotated {annotation!r}, which is not known here ({error}); {EXPECTED}",
                )
    if get_origin(annotation) is Annotated:
        annotation = get_args(annotation)[0]
    return annotation


def _is_model(annotation: Any) -> bool:
    return inspect.isclass(annotation) and get_origin(annotation) is None and issubclass(annotation, BaseModel)
