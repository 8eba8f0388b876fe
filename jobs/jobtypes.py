"""JobType: one declared type of job, its checks, and how its handler is called."""

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, get_args

from django.utils.translation import gettext
from pydantic import BaseModel
from pydantic.errors import PydanticInvalidForJsonSchema

from jobs import payloads, signatures
from jobs.bounds import ATTEMPTS, CONCURRENCY, PRIORITIES, is_queue, is_type
from jobs.durations import parse_duration
from jobs.ratelimit import RateLimit, parse_rate
from jobs.signatures import RegistrationError

Isolation = Literal["async", "thread", "process"]


@dataclass(frozen=True, slots=True)
class JobType:
    """A type of job: its handler and what is declared with it (None where nothing is; durations in seconds).

    `summary` is the first line of the handler's docstring; `payload_model` is None when any object is
    accepted (`takes_payload`), or none at all.
    """

    name: str
    target: Callable[..., Any]
    module: str
    summary: str
    isolation: Isolation
    is_class: bool
    is_async: bool
    takes_payload: bool
    payload_model: type[BaseModel] | None
    queue: str | None = None
    priority: int | None = None
    timeout: float | None = None
    max_attempts: int | None = None
    backoff_base: float | None = None
    backoff_cap: float | None = None
    at_most_once: bool = False
    private_output: bool = False
    fresh: bool = False
    max_running: int | None = None
    rate_limit: RateLimit | None = None

    @property
    def description(self) -> str:
        """The summary in the active language, where the catalogues have it."""
        return gettext(self.summary) if self.summary else ""

    def schema(self) -> dict[str, Any]:
        """The JSON schema of the payload, unknown fields excluded as `parse` excludes them."""
        if self.payload_model is None:
            return {"type": "object"} if self.takes_payload else _closed({"type": "object", "properties": {}})
        try:
            schema = self.payload_model.model_json_schema()
        except PydanticInvalidForJsonSchema:  # a field that JSON schema has no words for is still validated
            return {"type": "object", "title": self.payload_model.__name__}
        if self.payload_model.model_config.get("extra") == "allow":
            return schema
        for nested in schema.get("$defs", {}).values():
            _closed(nested)
        return _closed(schema)

    def parse(self, payload: Any) -> Any:
        """The payload as the handler gets it: the model's instance, or the object itself.

        Raises jobs.errors.Invalid with the errors by field ("payload.rows").
        """
        if self.payload_model is None:
            return payloads.parse_object(payload, empty=not self.takes_payload)
        return payloads.parse(self.payload_model, payload)

    def call(self, ctx: Any, payload: Any) -> Any:
        """Run a plain handler and give what it returns; of an async one give the coroutine, to be awaited.

        `payload` is what `parse` gave. A class is instantiated anew. Raises what the handler raises, and
        TypeError when a plain handler returns a coroutine, which nobody would await.
        """
        entry, arguments = self.entry(ctx, payload)
        return self.checked(entry(*arguments))

    def entry(self, ctx: Any, payload: Any) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        """What `call` calls, and with what; of a class, a new instance's method. What it returns is to be `checked`."""
        entry = self.target().run if self.is_class else self.target
        return entry, ((ctx, payload) if self.takes_payload else (ctx,))

    def checked(self, returned: Any) -> Any:
        """What the handler returned. Raises TypeError for a plain one's coroutine, which nobody would await."""
        if not self.is_async and inspect.isawaitable(returned):
            if inspect.iscoroutine(returned):
                returned.close()
            raise TypeError(f"{self.name}: a plain handler returned a coroutine; declare it with async def")
        return returned


def _closed(schema: dict[str, Any]) -> dict[str, Any]:
    if "properties" in schema or not schema.get("additionalProperties"):
        schema.setdefault("additionalProperties", False)
    return schema


def declare(
    name: str,
    target: Any,
    *,
    queue: str | None,
    priority: int | None,
    timeout: float | str | None,
    max_attempts: int | None,
    backoff_base: float | str | None,
    backoff_cap: float | str | None,
    isolation: Isolation | None,
    at_most_once: bool,
    private_output: bool,
    fresh: bool,
    max_running: int | None,
    rate_limit: RateLimit | str | None,
) -> JobType:
    """A checked JobType. Raises RegistrationError naming the handler, the option and what was expected."""
    check = _Checks(signatures.place(target))
    check.that(is_type(name), "name", name, "1 to 200 characters of a-z, 0-9, '.', '_' and '-'")
    signature = signatures.read(target)
    check.queue(queue)
    check.whole("priority", priority, PRIORITIES)
    check.whole("max_attempts", max_attempts, ATTEMPTS)
    seconds = {
        "timeout": check.seconds("timeout", timeout, positive=True),
        "backoff_base": check.seconds("backoff_base", backoff_base),
        "backoff_cap": check.seconds("backoff_cap", backoff_cap),
    }
    base, cap = seconds["backoff_base"], seconds["backoff_cap"]
    check.that(
        base is None or cap is None or cap >= base,
        "backoff_cap",
        cap,
        f"at least backoff_base ({base:g} s)" if base else "",
    )
    check.flag("at_most_once", at_most_once)
    check.flag("private_output", private_output)
    check.flag("fresh", fresh)
    check.whole("max_running", max_running, CONCURRENCY)
    check.that(
        not at_most_once or max_attempts in {None, 1},
        "max_attempts",
        max_attempts,
        "1, since at_most_once is set",
    )
    where = check.isolation(isolation, signature.is_async)
    check.that(not fresh or where == "process", "fresh", fresh, 'False, since only isolation="process" has it')
    return JobType(
        name=name,
        target=target,
        module=target.__module__,
        summary=_summary(target),
        isolation=where,
        is_class=signature.is_class,
        is_async=signature.is_async,
        takes_payload=signature.takes_payload,
        payload_model=signature.payload_model,
        queue=queue,
        priority=priority,
        max_attempts=max_attempts,
        at_most_once=at_most_once,
        private_output=private_output,
        fresh=fresh,
        max_running=max_running,
        rate_limit=check.rate("rate_limit", rate_limit),
        **seconds,
    )


def _summary(target: Any) -> str:
    """The first line of the handler's own docstring (not one that a class inherits)."""
    own = inspect.cleandoc(target.__doc__ or "").strip()
    return own.splitlines()[0].strip() if own else ""


@dataclass(frozen=True, slots=True)
class _Checks:
    """The checks of a declaration's options; each raises RegistrationError in the same form."""

    place: str

    def that(self, holds: bool, option: str, value: object, expected: str) -> None:
        if not holds:
            raise RegistrationError(f"{self.place}: {option}: expected {expected}; got {value!r}")

    def queue(self, value: object) -> None:
        expected = "1 to 100 characters of a-z, 0-9, '.', '_' and '-', not dead-letter, not ending in _error"
        self.that(value is None or is_queue(value), "queue", value, expected)

    def whole(self, option: str, value: object, bounds: tuple[int, int]) -> None:
        low, high = bounds
        good = value is None or (isinstance(value, int) and not isinstance(value, bool) and low <= value <= high)
        self.that(good, option, value, f"a whole number from {low} to {high}")

    def flag(self, option: str, value: object) -> None:
        self.that(isinstance(value, bool), option, value, "True or False")

    def seconds(self, option: str, value: float | str | None, *, positive: bool = False) -> float | None:
        if value is None:
            return None
        try:
            parsed = parse_duration(value)
        except ValueError as error:
            raise RegistrationError(f"{self.place}: {option}: {error}; got {value!r}") from None
        self.that(parsed > 0 or not positive, option, value, "more than 0 seconds")
        return parsed

    def rate(self, option: str, value: RateLimit | str | None) -> RateLimit | None:
        try:
            return None if value is None else parse_rate(value)
        except ValueError as error:
            raise RegistrationError(f"{self.place}: {option}: {error}; got {value!r}") from None

    def isolation(self, value: Isolation | None, is_async: bool) -> Isolation:
        if value is None:
            return "async" if is_async else "process"
        self.that(value in get_args(Isolation), "isolation", value, '"async", "thread" or "process"')
        if is_async:
            self.that(value == "async", "isolation", value, '"async", since the handler is async def')
        else:
            self.that(value != "async", "isolation", value, '"thread" or "process", since the handler is plain def')
        return value
