"""What the rule of a loss asks of the configuration, for whoever finds one."""

import logging
from collections.abc import Iterable

from jobs.conf import conf
from jobs.policy import limits, policy
from jobs.ratelimit import Limits
from jobs.registry import catalogue
from jobs.retry import RetryPolicy

log = logging.getLogger(__name__)


def retry_policy(type_name: str) -> RetryPolicy:
    """The retry policy of a type, as declared and configured; the default where that can't be told."""
    try:
        return policy(catalogue.get(type_name) or type_name).retry
    except Exception:  # one type's trouble must not stop the recovery of all
        log.exception("recovery.no_policy", extra={"type": type_name})
        return RetryPolicy()


def configured_retry_policy(type_name: str) -> RetryPolicy:
    """The same without the handler's declaration: for who must not import the modules that may have ended a worker."""
    try:
        return policy(type_name).retry
    except Exception:
        log.exception("recovery.no_policy", extra={"type": type_name})
        return RetryPolicy()


def attempt_timeout(type_name: str) -> float:
    """Seconds that an attempt of a type may take, were its request to say nothing."""
    try:
        return policy(catalogue.get(type_name) or type_name).timeout
    except Exception:
        log.exception("breaker.no_policy", extra={"type": type_name})
        return conf().resilience.timeout


def declared_limits(names: Iterable[str]) -> dict[str, Limits]:
    """What holds for these types in the whole cluster, as handlers and configuration say."""
    found = {}
    for name in names:
        try:
            found[name] = limits(catalogue.get(name) or name)
        except Exception:
            log.exception("limits.no_policy", extra={"type": name})
    return found
