"""Requests on their way to rows: each is checked, then all problems are raised at once, then the rows are made."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC
from typing import Any
from uuid import UUID

from django.utils.translation import gettext as _
from pydantic_core import PydanticSerializationError

from jobs import jsonvalues
from jobs.bounds import KEY_LENGTH, is_type
from jobs.conf import conf
from jobs.errors import Invalid, Refused, Text, refused_fields
from jobs.ids import new_id
from jobs.jobtypes import JobType
from jobs.jsonvalues import JsonProblem
from jobs.registry import EffectivePolicy, catalogue, policy
from jobs.requests import JobRequest, check_options, check_text, plain_payload, request_hash
from jobs.transitions.insert import Enqueued, NewJob, insert
from jobs.transitions.parents import UnknownParents


@dataclass(frozen=True, slots=True)
class _Checked:
    """A request with its type (None for one without a handler here) and its payload as JSON text."""

    request: JobRequest
    job_type: JobType | None
    payload: str
    prefix: str


class Batch:
    """Call `add` for each request, `raise_problems`, `rows`.

    `key` is an idempotency key for the whole batch. `unknown`: "refuse" or "accept" types without a handler here (None:
    as `api.unknown_types` says).
    """

    def __init__(self, owner: str | None, route: str, key: str | None = None, *, unknown: str | None = None) -> None:
        self._unknown = unknown or conf().api.unknown_types
        self._owner = owner
        self._route = route
        self._key = key
        self._limits = conf().limits
        self._policies: dict[tuple[Any, ...], EffectivePolicy] = {}
        self._checked: list[_Checked] = []
        self._keys: dict[str, str] = {}
        self._prefix = ""
        self._errors: dict[str, list[Text]] = {}
        self._kinds: set[type[Refused]] = set()
        self._extra: dict[str, Any] = {}
        self._check_binding(owner, route, key)

    def _check_binding(self, owner: object, route: object, key: object) -> None:
        """What binds the idempotency keys, as a caller in code may have given it."""
        check_text("owner", owner, KEY_LENGTH, self.report)
        check_text("route", "" if route is None else route, KEY_LENGTH, self.report)
        check_text("idempotency_key", key, KEY_LENGTH, self.report)

    def report(self, field: str, *messages: Text, kind: type[Refused] = Invalid) -> None:
        """Note what is wrong with a field of the request that is being added."""
        self._errors.setdefault(self._prefix + field, []).extend(messages)
        self._kinds.add(kind)

    def _report_all(self, refusal: Refused) -> None:
        for field, messages in refusal.errors.items():
            self.report(field, *messages, kind=type(refusal))
        self._extra |= refusal.extra

    def add(self, request: JobRequest, prefix: str = "") -> None:
        """Check one request; `prefix` stands before the names of its fields."""
        self._prefix = prefix
        if not isinstance(request, JobRequest):
            self._prefix = ""
            self.report(prefix.rstrip(".") or "job", _("Expected a JobRequest."))
            return
        check_options(request, self.report)
        if request.idempotency_key is not None:
            self._check_key(request.idempotency_key)
        job_type = self._type(request.type)
        self._checked.append(_Checked(request, job_type, self._payload(request, job_type), prefix))

    def _check_key(self, key: str) -> None:
        if self._key is not None:
            self.report("idempotency_key", _("Give a key to the batch or to its jobs, not to both."))
        elif isinstance(key, str) and self._keys.setdefault(key, self._prefix) != self._prefix:
            first = self._keys[key].rstrip(".")
            self.report("idempotency_key", _("Job %(index)s of this batch has the same key.") % {"index": first})

    def _type(self, name: object) -> JobType | None:
        if not isinstance(name, str) or not is_type(name):
            return None  # reported by check_options
        if self._unknown == "accept":
            return catalogue.get(name)
        try:
            return catalogue.require(name)
        except Refused as unknown:
            self._report_all(unknown)
            return None

    def _payload(self, request: JobRequest, job_type: JobType | None) -> str:
        """The payload's JSON; an empty text when it is refused, which is reported."""
        try:
            plain = plain_payload(request.payload)
            raw = jsonvalues.encode(plain, depth=self._limits.depth, max_bytes=self._limits.payload)
            if not isinstance(plain, dict):
                self.report("payload", _("Expected an object."))
            elif job_type is not None:
                job_type.parse(plain)
            return raw.decode()
        except JsonProblem as problem:
            self._report_all(problem.refusal("payload"))
        except Invalid as refusal:
            self._report_all(refusal)
        except PydanticSerializationError:
            self.report("payload", _("Expected JSON."))
        return ""

    def raise_problems(self) -> None:
        """One refusal for all: of the kind on which all agree, else Invalid."""
        if not self._errors:
            return
        kind = self._kinds.pop() if len(self._kinds) == 1 else Invalid
        raise refused_fields(self._errors, kind, **(self._extra if len(self._errors) == 1 else {}))

    def insert(self, rows: Sequence[NewJob], *, using: str) -> list[Enqueued]:
        """Insert what `rows` answered; parents that do not exist are refused like every other field, by index."""
        try:
            return insert(rows, using=using)
        except UnknownParents as unknown:
            for checked, row in zip(self._checked, rows, strict=True):
                self._prefix = checked.prefix
                for index, parent in enumerate(checked.request.after):
                    if (row.id, parent) in unknown.missing:
                        self.report(f"after.{index}", _("No job has this id."))
            self.raise_problems()
            raise

    def rows(self, hashes: Mapping[int, str]) -> list[NewJob]:
        """The rows of what was added, in order, with ascending ids; `hashes` by index replaces the requests' own."""
        ids = sorted(new_id() for _checked in self._checked)
        rows = []
        for index, (id_, checked) in enumerate(zip(ids, self._checked, strict=True)):
            row = self._row(id_, checked)
            key = row.idempotency_key if self._key is None else f"{self._key}#{index}"
            if key is not None:
                given = hashes.get(index) or request_hash([checked.request])
                row = row._replace(idempotency_key=key, route=self._route, request_hash=given)
            rows.append(row)
        return rows

    def _row(self, id_: UUID, checked: _Checked) -> NewJob:
        request = checked.request
        held = self._policy(request, checked.job_type)
        return NewJob(
            id=id_,
            type=request.type,
            queue=held.queue,
            payload=checked.payload,
            priority=held.own_priority,
            max_attempts=held.max_attempts,
            timeout=held.timeout,
            at_most_once=held.at_most_once,
            run_at=request.run_at and request.run_at.astimezone(UTC),
            delay=None if request.delay is None else float(request.delay),
            unique_key=request.unique_key,
            concurrency_key=request.concurrency_key,
            concurrency_limit=request.concurrency_limit or (None if request.concurrency_key is None else 1),
            idempotency_key=request.idempotency_key,
            owner=self._owner,
            origin=request.origin,
            tags=tuple(dict.fromkeys(request.tags)),
            after=tuple(dict.fromkeys(request.after)) or None,
            on_parent_failure=request.on_parent_failure,
        )

    def _policy(self, request: JobRequest, job_type: JobType | None) -> EffectivePolicy:
        asked = (request.queue, request.priority, request.timeout, request.max_attempts)
        found = self._policies.get((request.type, *asked))
        if found is None:
            queue, priority, timeout, attempts = asked
            found = policy(
                job_type or request.type, queue=queue, priority=priority, timeout=timeout, max_attempts=attempts
            )
            self._policies[(request.type, *asked)] = found
        return found
