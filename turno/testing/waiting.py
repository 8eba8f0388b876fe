"""What waits in the database now: to look at, to demand, to rule out."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, TypedDict, Unpack
from uuid import UUID

from django.apps import apps

from jobs.conf import conf
from jobs.requests import plain_payload
from jobs.states import State
from turno.testing.handed import Handler, declared_type, instant_of, length_of

NEAR = timedelta(seconds=1)  # how far apart two instants that are meant to be one may lie
SHOWN = 20
TEXT = 200  # characters of a payload in a failure's text
_COLUMNS = (
    "id", "type", "queue", "payload", "priority", "tags", "unique_key", "state", "waiting_for", "run_at", "created_at",
)  # fmt: skip


@dataclass(frozen=True)
class WaitingJob:
    """A job that waits to run. `run_at`: the instant it waits for; `waiting_for`: what else, or why until then."""

    id: UUID
    type: str
    queue: str
    payload: Any
    priority: int
    tags: list[str]
    unique_key: str | None
    state: str
    waiting_for: str | None
    run_at: datetime | None
    created_at: datetime

    @property
    def delay(self) -> float:
        """Seconds from when it was enqueued to the instant that it waits for; 0 without one."""
        return 0.0 if self.run_at is None else (self.run_at - self.created_at).total_seconds()

    def __str__(self) -> str:
        told = [self.type, f"queue={self.queue}", f"priority={self.priority}"]
        told += [f"tags={self.tags}"] if self.tags else []
        told += [f"unique_key={self.unique_key}"] if self.unique_key else []
        told += [f"run_at={self.run_at.isoformat()}"] if self.run_at else []
        told += [f"waiting_for={self.waiting_for}"] if self.state == State.SCHEDULED else []
        payload = json.dumps(self.payload, ensure_ascii=False)
        return " ".join([*told, payload if len(payload) <= TEXT else f"{payload[:TEXT]}…"])


class Asked(TypedDict, total=False):
    """What a waiting job can be asked to be; `enqueued` says how each is compared."""

    payload: Any
    queue: str
    priority: int
    tags: Sequence[str]
    unique_key: str
    run_at: datetime | str
    delay: timedelta | float


class _Wish:
    """What a job is asked to be: each part with the function that says what is wrong with a job's."""

    def __init__(self, type: Handler | None, asked: Asked) -> None:
        unknown = sorted(set(asked) - set(Asked.__annotations__))
        if unknown:
            known = ", ".join(Asked.__annotations__)
            raise TypeError(f"{unknown[0]}: no such criterion; expected one of type, {known}")
        self._parts: dict[str, Any] = {}
        self._checks: list[Callable[[WaitingJob], list[str]]] = []
        self._type(type)
        self._payload(asked.get("payload"))
        self._column("queue", asked.get("queue"))
        self._column("priority", asked.get("priority"))
        self._tags(asked.get("tags"))
        self._column("unique_key", asked.get("unique_key"))
        self._instant(asked.get("run_at"), asked.get("delay"))

    def _add(self, name: str, value: Any, check: Callable[[WaitingJob], list[str]]) -> None:
        if value is not None:
            self._parts[name] = value
            self._checks.append(check)

    def _type(self, given: Handler | None) -> None:
        if given is None:
            return
        elsewhere = isinstance(given, str) and conf().api.unknown_types == "accept"  # its handler may be
        name = given if elsewhere else declared_type(given).name
        self._add("type", name, lambda job: differences("type", name, job.type))

    def _column(self, name: str, value: Any) -> None:
        self._add(name, value, lambda job: differences(name, value, getattr(job, name)))

    def _payload(self, given: Any) -> None:
        wanted = given if given is None or callable(given) else plain_payload(given)
        self._add("payload", wanted, lambda job: differences("payload", wanted, job.payload))

    def _tags(self, given: Sequence[str] | None) -> None:
        if isinstance(given, str):
            raise TypeError("tags: expected a list of text, got str")
        wanted = list(given) if given is not None else None

        def check(job: WaitingJob) -> list[str]:
            missing = [tag for tag in wanted or () if tag not in job.tags]
            return [f"tags: expected {missing} among {job.tags}"] if missing else []

        self._add("tags", wanted, check)

    def _instant(self, run_at: datetime | str | None, delay: timedelta | float | None) -> None:
        if run_at is not None:
            instant = instant_of("run_at", run_at)

            def at(job: WaitingJob) -> list[str]:
                there = job.run_at is not None and abs(job.run_at - instant) <= NEAR
                return [] if there else [f"run_at: expected {instant.isoformat()}, got {_said(job.run_at)}"]

            self._add("run_at", instant, at)
        if delay is not None:
            seconds = length_of("delay", delay).total_seconds()

            def after(job: WaitingJob) -> list[str]:
                there = abs(job.delay - seconds) <= NEAR.total_seconds() and (seconds > 0 or job.run_at is None)
                return [] if there else [f"delay: expected {seconds:g} s, got {job.delay:g} s"]

            self._add("delay", seconds, after)

    def problems(self, job: WaitingJob) -> list[str]:
        """In what a job is not what is asked for; nothing says that it is."""
        return [problem for check in self._checks for problem in check(job)]

    def __str__(self) -> str:
        return ", ".join(f"{name}={_said(value)}" for name, value in self._parts.items()) or "any"


def _said(value: Any) -> str:
    return value.isoformat() if isinstance(value, datetime) else repr(value)


def differences(path: str, wanted: Any, found: Any) -> list[str]:
    """Where `found` is not as `wanted`, by path: of an object the members that are wanted count, of a list all.

    A function in the place of a value is asked about what stands there.
    """
    if isinstance(wanted, Mapping) and isinstance(found, dict):
        missing = [f"{path}.{key}: missing" for key in wanted if key not in found]
        inside = [key for key in wanted if key in found]
        return missing + [text for key in inside for text in differences(f"{path}.{key}", wanted[key], found[key])]
    if isinstance(wanted, (list, tuple)) and isinstance(found, list) and len(wanted) == len(found):
        pairs = enumerate(zip(wanted, found, strict=True))
        return [text for index, (one, other) in pairs for text in differences(f"{path}.{index}", one, other)]
    if isinstance(wanted, type):
        raise TypeError(f"{path}: expected a value or a function, got the class {wanted.__name__}")
    if callable(wanted):
        return [] if wanted(found) else [f"{path}: {getattr(wanted, '__name__', wanted)} says no to {found!r}"]
    numbers = isinstance(wanted, (int, float)) and isinstance(found, (int, float))
    alike = not numbers or isinstance(wanted, bool) is isinstance(found, bool)  # 1 is not true in JSON
    return [] if alike and wanted == found else [f"{path}: expected {wanted!r}, got {found!r}"]


def _waiting(using: str) -> list[WaitingJob]:
    """Every job that waits, Enqueued or Scheduled for whatever reason, in the order in which they came."""
    jobs = apps.get_model("jobs", "Job").objects.using(using)
    rows = jobs.filter(state__in=[State.ENQUEUED, State.SCHEDULED]).order_by("created_at", "id")
    return [WaitingJob(*row) for row in rows.values_list(*_COLUMNS)]


def enqueued(type: Handler | None = None, *, using: str = "default", **asked: Unpack[Asked]) -> list[WaitingJob]:
    """The jobs that wait to run (Enqueued, or Scheduled for whatever reason) and are as asked, the oldest first.

    `type`: a handler, a JobType or a type's name. `payload`: what must stand in the job's, by members, at any depth; a
    list is compared as a whole, and a function in the place of a value is asked. `queue`, `priority`, `unique_key`: the
    job's. `tags`: those that must be among the job's. `run_at`, and `delay` from when it was enqueued (seconds or a
    timedelta; 0: at once): within a second.

    Raises UnknownType for a name that nothing is registered under (a typing error would fit nothing, for ever), unless
    `api.unknown_types` accepts those; TypeError or ValueError for what can't be asked.
    """
    wish = _Wish(type, asked)
    return [job for job in _waiting(using) if not wish.problems(job)]


def assert_enqueued(
    type: Handler | None = None, *, count: int | None = None, using: str = "default", **asked: Unpack[Asked]
) -> list[WaitingJob]:
    """Demand that a job waits which is as asked (`enqueued` says how), or just `count` of them; gives those jobs.

    Raises AssertionError with what waits, and what is wrong with each: the nearest first.
    """
    if isinstance(count, bool) or not isinstance(count, int | None) or (count or 0) < 0:
        raise ValueError(f"count: expected a whole number from 0, got {count!r}")
    wish, waiting = _Wish(type, asked), _waiting(using)
    found = [job for job in waiting if not wish.problems(job)]
    if count is None and not found:
        raise AssertionError(f"No such job waits: {wish}.\n{_nearest(wish, waiting)}")
    if count is not None and len(found) != count:
        raise AssertionError(f"Expected {count} of {wish}, found {len(found)}.\n{_nearest(wish, waiting)}")
    return found


def refute_enqueued(type: Handler | None = None, *, using: str = "default", **asked: Unpack[Asked]) -> None:
    """Demand that no job waits which is as asked (`enqueued` says how). Raises AssertionError with those that do."""
    found = enqueued(type, using=using, **asked)
    if found:
        lines = "\n".join(f"  {job}" for job in found[:SHOWN])
        raise AssertionError(f"Expected none of {_Wish(type, asked)}, found {len(found)}:\n{lines}")


def _nearest(wish: _Wish, waiting: Sequence[WaitingJob]) -> str:
    """What waits, with what is wrong with each; those of another type come last."""
    if not waiting:
        return "No job waits at all."
    told = [(wish.problems(job), job) for job in waiting]
    told.sort(key=lambda one: (any(text.startswith("type:") for text in one[0]), len(one[0])))
    lines = [f"Waiting: {len(waiting)}, the nearest first"]
    for problems, job in told[:SHOWN]:
        lines += [f"  {job}", *(f"    {text}" for text in problems)]
    return "\n".join(lines)
