"""What a caller may ask for a job beside its payload, and the checks of each field."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from django.utils.translation import gettext as _
from pydantic import BaseModel

from jobs import jsonvalues
from jobs.bounds import (
    ATTEMPTS,
    CONCURRENCY,
    KEY_LENGTH,
    LONGEST_DELAY,
    LONGEST_TIMEOUT,
    ORIGIN_LENGTH,
    PARENT_POLICIES,
    PARENTS,
    PRIORITIES,
    TAG_LENGTH,
    TAGS,
    is_queue,
    is_type,
)

# Called with a field's name and what is wrong with it.
type Report = Callable[[str, str], None]


@dataclass(frozen=True, slots=True)
class JobRequest:
    """One job to enqueue. What is None comes from the type's policy.

    `payload`: a JSON object, or an instance of the type's Pydantic model. `run_at`: an aware datetime; `delay`: seconds
    from now by the database's clock; not both, and what is past by then means now. `timeout`: seconds, over the whole
    attempt. `concurrency_key`: of the jobs with one key at most `concurrency_limit` (None: 1) run at once. `origin`:
    where the job comes from, in the caller's words. `after`: ids of jobs of the same owner that must have ended before;
    `on_parent_failure` says what the job does when one of them did not succeed: "cancel" (None) or "run".
    """

    type: str
    payload: Mapping[str, Any] | BaseModel = field(default_factory=dict)
    queue: str | None = None
    priority: int | None = None
    run_at: datetime | None = None
    delay: float | None = None
    unique_key: str | None = None
    concurrency_key: str | None = None
    concurrency_limit: int | None = None
    idempotency_key: str | None = None
    max_attempts: int | None = None
    timeout: float | None = None
    tags: tuple[str, ...] | list[str] = ()
    origin: str | None = None
    after: tuple[UUID, ...] | list[UUID] = ()
    on_parent_failure: str | None = None


def check_options(request: JobRequest, report: Report) -> None:
    """Report every field but the payload that can't be used; whether the type exists is asked elsewhere."""
    if not is_type(request.type):
        report("type", _("Expected 1 to 200 characters of a-z, 0-9, '.', '_' and '-'."))
    if request.queue is not None:
        check_queue(request.queue, report)
    check_whole("priority", request.priority, PRIORITIES, report)
    check_whole("max_attempts", request.max_attempts, ATTEMPTS, report)
    check_instant(request.run_at, report)
    check_seconds("delay", request.delay, LONGEST_DELAY, report)
    check_seconds("timeout", request.timeout, LONGEST_TIMEOUT, report, positive=True)
    if request.run_at is not None and request.delay is not None:
        report("delay", _("Give run_at or delay, not both."))
    check_text("unique_key", request.unique_key, KEY_LENGTH, report)
    check_text("concurrency_key", request.concurrency_key, KEY_LENGTH, report)
    check_whole("concurrency_limit", request.concurrency_limit, CONCURRENCY, report)
    if request.concurrency_limit is not None and request.concurrency_key is None:
        report("concurrency_limit", _("Give the concurrency_key that it limits."))
    check_text("idempotency_key", request.idempotency_key, KEY_LENGTH, report)
    check_text("origin", request.origin, ORIGIN_LENGTH, report)
    check_tags(request.tags, report)
    check_after(request.after, report)
    if request.on_parent_failure is not None and request.on_parent_failure not in PARENT_POLICIES:
        report("on_parent_failure", _("Expected one of: %(names)s.") % {"names": ", ".join(PARENT_POLICIES)})
    elif request.on_parent_failure is not None and not request.after:
        report("on_parent_failure", _("Give it together with after."))


def check_queue(value: object, report: Report) -> None:
    """A queue's name."""
    if not is_queue(value):
        report(
            "queue",
            _("Expected 1 to 100 characters of a-z, 0-9, '.', '_' and '-'; not dead-letter, not ending in _error."),
        )


def check_whole(name: str, value: object, bounds: tuple[int, int], report: Report) -> None:
    """None, or a whole number within bounds; True and False are no numbers."""
    if value is None:
        return
    least, most = bounds
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
        report(name, _("Expected a whole number from %(least)d to %(most)d.") % {"least": least, "most": most})


def check_seconds(name: str, value: object, longest: int, report: Report, *, positive: bool = False) -> None:
    """None, or a number of seconds from 0 (`positive`: more than 0) to `longest`."""
    if value is None:
        return
    if (
        isinstance(value, (int, float))
        and not isinstance(value, bool)
        and 0 <= value <= longest
        and (value or not positive)
    ):
        return
    sentence = (
        _("Expected more than 0 and at most %(most)d seconds.") if positive else _("Expected 0 to %(most)d seconds.")
    )
    report(name, sentence % {"most": longest})


def check_instant(value: object, report: Report) -> None:
    """None, or an aware datetime from 1970 to 9999, in UTC."""
    if value is None:
        return
    if not isinstance(value, datetime) or value.utcoffset() is None:
        report("run_at", _("Expected an instant with its offset from UTC, such as 2026-01-31T12:00:00Z."))
        return
    try:
        year = value.astimezone(UTC).year
    except OverflowError:
        year = 0
    if year < 1970:
        report("run_at", _("Expected an instant from 1970 to 9999."))


def check_text(name: str, value: object, longest: int, report: Report) -> None:
    """None, or printable text of 1 to `longest` characters, not all blank."""
    if value is not None and not _printable(value, longest):
        report(name, _("Expected 1 to %(most)d printable characters.") % {"most": longest})


def check_tags(value: object, report: Report) -> None:
    """A list of at most TAGS tags."""
    if not isinstance(value, (list, tuple)):
        report("tags", _("Expected a list of text."))
        return
    if len(value) > TAGS:
        report("tags", _("Expected at most %(most)d tags.") % {"most": TAGS})
        return
    for index, tag in enumerate(value):
        if not _printable(tag, TAG_LENGTH):
            report(f"tags.{index}", _("Expected 1 to %(most)d printable characters.") % {"most": TAG_LENGTH})


def check_after(value: object, report: Report) -> None:
    """A list of at most PARENTS ids; whether there are such jobs is asked elsewhere."""
    if not isinstance(value, (list, tuple)):
        report("after", _("Expected a list of ids of jobs."))
        return
    if len(value) > PARENTS:
        report("after", _("Expected at most %(most)d jobs.") % {"most": PARENTS})
        return
    for index, parent in enumerate(value):
        if not isinstance(parent, UUID):
            report(f"after.{index}", _("Expected the id of a job."))


def _printable(value: object, longest: int) -> bool:
    return isinstance(value, str) and 0 < len(value) <= longest and value.isprintable() and not value.isspace()


def fingerprint(request: JobRequest) -> dict[str, Any]:
    """What makes two requests the same, for their hash: all that was asked for but the key itself and the origin."""
    return {
        "type": request.type,
        "payload": plain_payload(request.payload),
        "queue": request.queue,
        "priority": request.priority,
        "run_at": None if request.run_at is None else request.run_at.astimezone(UTC).isoformat(),
        "delay": None if request.delay is None else float(request.delay),
        "unique_key": request.unique_key,
        **_stated(request),
        "max_attempts": request.max_attempts,
        "timeout": None if request.timeout is None else float(request.timeout),
        "tags": list(request.tags),
        # Only where it was asked for: the hashes of older requests stay what they were.
        **({"after": [str(parent) for parent in request.after]} if request.after else {}),
        **({"on_parent_failure": request.on_parent_failure} if request.on_parent_failure else {}),
    }


def _stated(request: JobRequest) -> dict[str, Any]:
    """Options that came later: where they are not given the hash is what it was before there were any."""
    stated = {"concurrency_key": request.concurrency_key, "concurrency_limit": request.concurrency_limit}
    return {name: value for name, value in stated.items() if value is not None}


def request_hash(requests: list[JobRequest]) -> str:
    """The hash of checked requests: key order and white space of the original text don't change it."""
    return jsonvalues.canonical_hash([fingerprint(request) for request in requests])


def plain_payload(payload: object) -> Any:
    """The payload in JSON's own types: None is an empty object, a model is dumped as JSON."""
    if payload is None:
        return {}
    if isinstance(payload, BaseModel):
        return payload.model_dump(mode="json", by_alias=True)
    return dict(payload) if isinstance(payload, Mapping) and not isinstance(payload, dict) else payload
