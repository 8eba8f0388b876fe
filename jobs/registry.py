"""The catalogue of job types, and `@job_type`, which puts handlers into it."""

import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from difflib import get_close_matches
from typing import Any, TypeVar

from django.utils.translation import gettext_lazy as _

from jobs import signatures, tryout
from jobs.conf import conf
from jobs.context import JobContext
from jobs.errors import UnknownType
from jobs.jobtypes import Isolation, JobType, declare
from jobs.loading import SAMPLES, LoadProblem, attempt, configured_modules, tell
from jobs.policy import EffectivePolicy, policy
from jobs.signatures import RegistrationError

__all__ = [
    "Catalogue",
    "EffectivePolicy",
    "JobContext",
    "JobType",
    "LoadProblem",
    "RegistrationError",
    "catalogue",
    "job_type",
    "policy",
    "type_of",
]

Handler = TypeVar("Handler", bound=Callable[..., Any])
MARK = "__turno_job_type__"


class Catalogue:
    """The job types of this process; loads the configured modules when a name is not found. Thread-safe."""

    def __init__(self) -> None:
        self._types: dict[str, JobType] = {}
        self._outcomes: dict[str, LoadProblem | None] = {}
        # Two: a thread that imports a handler module by itself must be able to register while another loads.
        self._registering = threading.Lock()
        self._loading = threading.RLock()
        self._busy = False

    def register(self, job_type: JobType) -> None:
        """Add a type; the same handler again replaces itself. RegistrationError when another has the name."""
        with self._registering:
            present = self._types.get(job_type.name)
            if present is not None and not _same_handler(present, job_type):
                raise RegistrationError(
                    f"{signatures.place(job_type.target)}: the name {job_type.name!r} belongs to"
                    f" {signatures.place(present.target)}; expected a name of its own"
                )
            self._types[job_type.name] = job_type

    def load(self, *, guarded: bool = False) -> list[LoadProblem]:
        """Import the configured modules that were not tried yet; what is wrong with those configured now.

        A module that fails stops no other one, and the types that it had registered by then are withdrawn. It
        is not tried again in this process. `guarded`, for processes that others rely on: each module is imported in
        a throw-away process first, so that one that ends or hangs whoever imports it is not imported here at all
        (`jobs.tryout`); and no database connection that an import opened stays open.
        """
        modules = configured_modules()
        if any(module not in self._outcomes for module in modules):
            with self._loading:
                if not self._busy:  # a handler module that asks the catalogue at its import gets what there is
                    self._busy = True
                    try:
                        self._load(modules, guarded)
                    finally:
                        self._busy = False
        return self.problems()

    def problems(self) -> list[LoadProblem]:
        """What is wrong with the modules that are configured now, of those that were tried; imports nothing."""
        return [problem for module in configured_modules() if (problem := self._outcomes.get(module))]

    def leave_out(self, modules: Iterable[str]) -> None:
        """Never import these: the process that started this one found them broken, and has said so."""
        for module in modules:
            self._outcomes.setdefault(module, LoadProblem(module, "left out"))

    def _load(self, modules: tuple[str, ...], guarded: bool) -> None:
        if not guarded:
            for module in modules:
                self._import(module, {})
            return
        # The samples are our own, and what is imported already can do nothing any more: those need no process.
        untried = [m for m in modules if m not in self._outcomes and m != SAMPLES and m not in sys.modules]
        tried = tryout.try_modules(untried, conf().worker.import_timeout)
        with tryout.no_connections_left():
            for module in modules:
                self._import(module, tried)

    def _import(self, module: str, tried: Mapping[str, LoadProblem | None]) -> None:
        if module in self._outcomes:
            return
        before = set(self._types)
        problem = tried.get(module) or attempt(module)
        if problem is not None:
            tell(problem)
            with self._registering:
                for name in set(self._types) - before:
                    if self._types[name].module not in sys.modules:  # Python drops a module whose import failed
                        del self._types[name]
        self._outcomes[module] = problem

    def get(self, name: str) -> JobType | None:
        """The type of this name, or None."""
        found = self._types.get(name)
        if found is None:
            self.load()
            found = self._types.get(name)
        return found

    def require(self, name: str) -> JobType:
        """The type of this name. Raises UnknownType, with the nearest names in `extra["nearest"]`."""
        found = self.get(name)
        if found is None:
            nearest = self.nearest(name)
            hint = _("There is no such job type; did you mean %(names)s?") % {"names": ", ".join(nearest)}
            text = hint if nearest else _("There is no such job type.")
            raise UnknownType(text, errors={"type": [text]}, nearest=nearest)
        return found

    def names(self) -> list[str]:
        """Every type's name, sorted."""
        self.load()
        return sorted(self._types)

    def types(self) -> list[JobType]:
        """Every type, sorted by name."""
        self.load()
        return sorted(self._types.values(), key=lambda job_type: job_type.name)

    def nearest(self, name: str) -> list[str]:
        """At most three names that resemble `name`, the nearest first."""
        return get_close_matches(name[:200].lower(), self.names(), n=3)

    def schema(self, name: str) -> dict[str, Any]:
        """The JSON schema of a type's payload. Raises UnknownType."""
        return self.require(name).schema()

    @contextmanager
    def scratch(self) -> Iterator["Catalogue"]:
        """For tests: what is registered and loaded inside is forgotten afterwards."""
        self.load()  # once forgotten, a module that stays imported would not register again
        with self._registering:
            types, outcomes = dict(self._types), dict(self._outcomes)
        try:
            yield self
        finally:
            with self._registering:
                self._types, self._outcomes = types, outcomes


def _same_handler(one: JobType, other: JobType) -> bool:
    """Whether the same source declares both: its module was imported again."""
    return signatures.place(one.target) == signatures.place(other.target) and (
        one.target is other.target or signatures.first_line(one.target) == signatures.first_line(other.target)
    )


catalogue = Catalogue()


def type_of(handler: Any) -> JobType | None:
    """The JobType that `@job_type` gave this very function or class (not its base), or None."""
    return getattr(handler, "__dict__", {}).get(MARK)


def job_type(
    name: str,
    *,
    queue: str | None = None,
    priority: int | None = None,
    timeout: float | str | None = None,
    max_attempts: int | None = None,
    backoff_base: float | str | None = None,
    backoff_cap: float | str | None = None,
    isolation: Isolation | None = None,
    at_most_once: bool = False,
    private_output: bool = False,
    fresh: bool = False,
    max_running: int | None = None,
    rate_limit: str | None = None,
) -> Callable[[Handler], Handler]:
    """Declare the handler of a job type; the function or class itself stays as it is.

    A function `(ctx, payload)` or a class with `run(self, ctx, payload)`, made anew for each execution, each
    plain or async; `jobs.signatures` says which payloads are possible. The first line of its docstring
    describes the type.

    Durations are seconds or text such as "10 min". What is not declared comes from `resilience` in the
    configuration, which by type also overrides what is declared. `isolation`: "async" for coroutines; for plain
    functions "process" (default: a warm child process, ended with everything it started when its time is over) or
    "thread" (tiny jobs: a thread can't be killed). `fresh`: a new child process for each execution. `at_most_once`:
    once claimed, never repeated by the engine. `private_output`: API and screens show the class and message of its
    errors only. `max_running`: so many at once in the whole cluster, `rate_limit` ("100/m", "20/30s"): so many starts
    in any window; the others wait.

    Raises RegistrationError, a TypeError, naming the handler and what was expected.
    """
    if not isinstance(name, str):
        raise RegistrationError(
            f'{signatures.place(name)}: expected the name of the type, as in @job_type("reports.daily")'
        )

    def decorate(target: Handler) -> Handler:
        declared = declare(
            name,
            target,
            queue=queue,
            priority=priority,
            timeout=timeout,
            max_attempts=max_attempts,
            backoff_base=backoff_base,
            backoff_cap=backoff_cap,
            isolation=isolation,
            at_most_once=at_most_once,
            private_output=private_output,
            fresh=fresh,
            max_running=max_running,
            rate_limit=rate_limit,
        )
        catalogue.register(declared)
        setattr(target, MARK, declared)
        return target

    return decorate
