"""What holds for a job: its request over configuration by type over the handler's declaration over defaults."""

from dataclasses import dataclass, replace

from jobs.breaker import BreakerPolicy
from jobs.conf import Settings, conf
from jobs.jobtypes import JobType
from jobs.ratelimit import Limits
from jobs.retry import RetryPolicy
from jobs.sections import TypePolicy

DEFAULT_QUEUE = "default"
_NOTHING = TypePolicy()


@dataclass(frozen=True, slots=True)
class EffectivePolicy:
    """Where a job waits, how long it may run (`timeout`, seconds), and what follows a failure. `own_priority` is None
    where only the queue may have one."""

    queue: str
    own_priority: int | None
    timeout: float
    retry: RetryPolicy
    at_most_once: bool
    immediate_retries: int
    immediate_retry_delay: float

    @property
    def priority(self) -> int:
        """The priority, where the queue has none for its jobs."""
        return self.own_priority or 0

    @property
    def max_attempts(self) -> int:
        """Attempts allowed."""
        return self.retry.max_attempts


def _first[T](*values: T | None, default: T) -> T:
    return next((value for value in values if value is not None), default)


class _Known:
    """The policies of one configuration by type: worked out once, as every enqueue and every execution asks."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self._by_name: dict[str, tuple[JobType | TypePolicy, EffectivePolicy]] = {}

    def of(self, name: str, declared: JobType | TypePolicy) -> EffectivePolicy:
        """The policy of a type, were a request to say nothing."""
        found = self._by_name.get(name)
        if found is None or found[0] is not declared:
            found = declared, self._work_out(name, declared)
            if isinstance(declared, JobType):  # names alone come from outside, without end
                self._by_name[name] = found
        return found[1]

    def _work_out(self, name: str, declared: JobType | TypePolicy) -> EffectivePolicy:
        defaults = self.settings.resilience
        typed = defaults.types.get(name, _NOTHING)
        once = isinstance(declared, JobType) and declared.at_most_once
        attempts = _first(typed.max_attempts, declared.max_attempts, default=defaults.max_attempts)
        retry = RetryPolicy(
            max_attempts=1 if once else attempts,
            base=_first(typed.backoff_base, declared.backoff_base, default=defaults.backoff_base),
            factor=defaults.backoff_factor,
            cap=_first(typed.backoff_cap, declared.backoff_cap, default=defaults.backoff_cap),
            jitter=defaults.jitter,
        )
        return EffectivePolicy(
            queue=_first(typed.queue, declared.queue, default=DEFAULT_QUEUE),
            own_priority=_first(typed.priority, declared.priority, default=None),
            timeout=_first(typed.timeout, declared.timeout, default=defaults.timeout),
            retry=retry,
            at_most_once=once,
            immediate_retries=0 if once else defaults.immediate_retries,
            immediate_retry_delay=defaults.immediate_retry_delay,
        )


def breaker_policy(type_name: str) -> BreakerPolicy:
    """When the breaker of a type opens, and for how long: `resilience.types.<name>`, else `resilience`."""
    defaults = conf().resilience
    typed = defaults.types.get(type_name, _NOTHING)
    return BreakerPolicy(
        enabled=_first(typed.breaker, default=defaults.breaker),
        ratio=_first(typed.breaker_ratio, default=defaults.breaker_ratio),
        window=_first(typed.breaker_window, default=defaults.breaker_window),
        minimum=_first(typed.breaker_minimum, default=defaults.breaker_minimum),
        open_for=_first(typed.breaker_open_for, default=defaults.breaker_open_for),
    )


def limits(job_type: JobType | str) -> Limits:
    """How many of a type run at once and start in a window, in the whole cluster, as configuration or handler say."""
    name = job_type if isinstance(job_type, str) else job_type.name
    declared = _NOTHING if isinstance(job_type, str) else job_type
    typed = conf().resilience.types.get(name, _NOTHING)
    return Limits(
        _first(typed.max_running, declared.max_running, default=None),
        _first(typed.rate_limit, declared.rate_limit, default=None),
    )


_known: dict[str, _Known] = {}


def policy(
    job_type: JobType | str,
    *,
    queue: str | None = None,
    priority: int | None = None,
    timeout: float | None = None,
    max_attempts: int | None = None,
) -> EffectivePolicy:
    """The policy of a type, or of the name of one without a handler here; the keywords are the request's.

    Of each value the first that is given counts: the request, `resilience.types.<name>`, the handler's
    declaration, `resilience`. `at_most_once` allows one attempt, whatever these say.
    """
    settings = conf()
    known = _known.get("now")
    if known is None or known.settings is not settings:
        known = _known["now"] = _Known(settings)
    found = known.of(job_type, _NOTHING) if isinstance(job_type, str) else known.of(job_type.name, job_type)
    if queue is None and priority is None and timeout is None and max_attempts is None:
        return found
    attempts = found.max_attempts if max_attempts is None or found.at_most_once else max_attempts
    return EffectivePolicy(
        queue=found.queue if queue is None else queue,
        own_priority=found.own_priority if priority is None else priority,
        timeout=found.timeout if timeout is None else timeout,
        retry=found.retry if attempts == found.max_attempts else replace(found.retry, max_attempts=attempts),
        at_most_once=found.at_most_once,
        immediate_retries=found.immediate_retries,
        immediate_retry_delay=found.immediate_retry_delay,
    )
