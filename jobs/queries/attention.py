"""What needs a person, the worst first: what the other reads have seen, and a few small looks of its own."""

import hashlib
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Protocol

from django.db import connections

from jobs.conf import conf
from jobs.queries.board import Board
from jobs.queries.circuits import circuits
from jobs.queries.depths import Depth
from jobs.queries.fleet import WorkerTrouble, broken_modules, stuck_handlers, troubles
from jobs.queries.outbox import Outbox, outbox
from jobs.queries.unserved import unserved

EACH = 20  # of one kind; a list longer than that is no list of concerns
QUOTED = 3  # of what workers say of one server; they mostly say the same
LETTERS = 2000
BROKER, REDIS = ("broker",), ("redis", "claims")  # what workers call their parts that need it
LATE = 60.0  # seconds after which a message in the outbox is late
SUSPECTS = """
SELECT id, type, queue, state, lost_count, created_at FROM turno.jobs
WHERE lost_count >= 2 AND state IN ('Scheduled', 'Enqueued', 'Processing')
ORDER BY lost_count DESC, id LIMIT %(each)s
"""
# Of the newest letters alone: how many a cause has in all is another read's figure.
GREW = """
SELECT g.fingerprint, g.added, g.last_at, GREATEST(0, extract(epoch FROM now() - g.last_at))::float8,
    newest.type, newest.error_type, left(newest.error_message, 500), g.looked >= %(letters)s
FROM (
    SELECT fingerprint, count(*) AS added, max(created_at) AS last_at, max(looked) AS looked
    FROM (
        SELECT *, count(*) OVER () AS looked FROM (
            SELECT fingerprint, created_at, resolved_at FROM turno.dead_letters
            WHERE created_at > now() - interval '1 hour' ORDER BY created_at DESC LIMIT %(letters)s
        ) AS newest
    ) AS new
    WHERE resolved_at IS NULL GROUP BY fingerprint ORDER BY added DESC, fingerprint LIMIT %(each)s
) AS g
CROSS JOIN LATERAL (
    SELECT type, error_type, error_message FROM turno.dead_letters AS d
    WHERE d.resolved_at IS NULL AND d.fingerprint = g.fingerprint AND d.created_at = g.last_at
    ORDER BY d.id DESC LIMIT 1
) AS newest
ORDER BY g.added DESC, g.fingerprint
"""


class Kind(StrEnum):
    """What may need a person, in the order of severity."""

    BROKER_AWAY = "broker_away"
    WORKER_LOST = "worker_lost"
    REDIS_AWAY = "redis_away"
    QUEUE_UNSERVED = "queue_unserved"
    TYPE_UNKNOWN = "type_unknown"
    CIRCUIT_OPEN = "circuit_open"
    SUSPECT = "suspect"
    MODULE_BROKEN = "module_broken"
    HANDLER_STUCK = "handler_stuck"
    OUTBOX_LATE = "outbox_late"
    WORKER_TROUBLED = "worker_troubled"
    CAUSE_GREW = "cause_grew"
    PAUSED = "paused"


class Probed(Protocol):
    """What a probe of this process found of a server beside PostgreSQL: a `jobs.health.Report`."""

    @property
    def name(self) -> str: ...
    @property
    def ok(self) -> bool: ...
    @property
    def values(self) -> Mapping[str, Any]: ...
    @property
    def where(self) -> tuple[str, ...]: ...
    @property
    def down_for(self) -> float: ...


@dataclass(frozen=True, slots=True)
class Concern:
    """Something that needs a person. `subject` names it (a worker, queue, type, job, module or fingerprint).

    `facts` by kind, spans in seconds:
    broker_away: transport, servers (host:port), down_for, seen_by ("web", and workers by name), said (what these say);
    waiting, estimated and oldest_for of the outbox.
    redis_away: servers (how many there are), down (how many of them), names (host:port of those), quorum, locks
    (Redlock is in use), on_failure, down_for, seen_by, said.
    outbox_late: waiting, estimated, oldest_for, failing, last_error, queues (that it is of). worker_troubled: part,
    error, seen_by.
    worker_lost: worker (id), name, state, seen_ago, jobs, returns_in (None without jobs). Its id is empty and its name
    None for jobs whose worker's row is gone.
    queue_unserved: queue, waiting, estimated, oldest_for. type_unknown: type, queue, waiting, at_least, since,
    since_for, fails_in (the first of them). circuit_open: type, state (open, half_open), opened_at, open_for, retry_in
    (None while a job is tried), failures, executions, span, probe (a job), waiting, at_least. suspect: job (id), type,
    queue, state, lost_count. module_broken: module, error, where (names). handler_stuck: worker (name), type, job,
    error, at. cause_grew: fingerprint, type, error_type, message, added (in the last hour; with at_least, maybe more),
    last_at, last_ago.
    paused: scope, value, reason, who, since, since_for, until, until_in, and for a queue waiting, estimated and
    oldest_for (else None).
    """

    kind: Kind
    subject: str
    facts: dict[str, Any]

    @property
    def severity(self) -> str:
        """failure, or warning: for what somebody did on purpose, and for a Redis that nothing hangs on."""
        spare = self.kind is Kind.REDIS_AWAY and (self.facts["quorum"] or not self.facts["locks"])
        return "warning" if spare or self.kind is Kind.PAUSED else "failure"

    @property
    def key(self) -> str:
        """The same for the same concern at each look, and of no other one: letters and digits, fit for an element."""
        named = "\x1f".join((self.kind, self.subject, str(self.facts.get("error", ""))))
        return f"{self.kind}-{hashlib.sha256(named.encode('utf-8', 'replace')).hexdigest()[:16]}".replace("_", "-")


def attention(board: Board, depths: Sequence[Depth], probed: Sequence[Probed] = ()) -> list[Concern]:
    """What needs a person, the worst kind first; at most 20 of each kind.

    `probed`: what is known of the servers beside PostgreSQL. Reads types that nobody has, circuits, suspects, new
    letters and the outbox.
    """
    told = troubles(board.workers)
    broker, redis = _down(probed, "broker"), _down(probed, "redis")
    # What this process sees itself needs no worker's words of its own.
    figures = outbox()
    known = [*(BROKER if broker else ()), *(REDIS if redis else ())]
    return [
        *([_broker(broker, told, figures)] if broker else []),
        *_lost(board),
        *([_redis(redis, told)] if redis else []),
        *_unserved(depths),
        *_unknown(),
        *_circuits(),
        *_suspects(),
        *_modules(board),
        *_handlers(board),
        *_outbox(figures, away=broker is not None),
        *_troubled([trouble for trouble in told if trouble.part not in known]),
        *_causes(),
        *_paused(board, depths),
    ]


def _rows(sql: str, **more: int) -> list[tuple[Any, ...]]:
    with connections["default"].cursor() as cursor:
        cursor.execute(sql, {"each": EACH, **more})
        return cursor.fetchall()


def _down(probed: Sequence[Probed], name: str) -> Probed | None:
    return next((one for one in probed if one.name == name and not one.ok), None)


def _seen(down: Probed, told: Sequence[WorkerTrouble], parts: Container[str], quoted: str) -> dict[str, Any]:
    """Who says that a server is away, and since when; in what words, where the part is the one `quoted`."""
    mine = [trouble for trouble in told if trouble.part in parts]
    names = sorted({name for trouble in mine for name in trouble.where})
    said = sorted({trouble.error for trouble in mine if trouble.part == quoted})[:QUOTED]
    return {"down_for": down.down_for, "seen_by": ["web", *names], "said": said}


def _broker(down: Probed, told: Sequence[WorkerTrouble], figures: Outbox) -> Concern:
    facts = {
        "transport": conf().messaging.transport, "servers": down.where, "waiting": figures.waiting,
        "estimated": figures.at_least, "oldest_for": figures.oldest_age,
    }  # fmt: skip
    return Concern(Kind.BROKER_AWAY, "broker", facts | _seen(down, told, BROKER, quoted="broker"))


def _redis(down: Probed, told: Sequence[WorkerTrouble]) -> Concern:
    servers = len(conf().redis.urls)
    missing = int(down.values.get("down", servers))
    facts = {
        "servers": servers, "down": missing, "names": down.where, "quorum": missing * 2 < servers,
        "locks": conf().redlock, "on_failure": conf().redis.on_failure,
    }  # fmt: skip
    return Concern(Kind.REDIS_AWAY, "redis", facts | _seen(down, told, REDIS, quoted="claims"))


def _outbox(figures: Outbox, *, away: bool) -> Iterator[Concern]:
    """While the broker is known to be `away`, that its messages wait is no news: only what it refuses is."""
    if figures.failing or (not away and (figures.oldest_age or 0) > LATE):
        facts = {
            "waiting": figures.waiting, "estimated": figures.at_least, "oldest_for": figures.oldest_age,
            "failing": figures.failing, "last_error": figures.last_error,
            "queues": [queue.queue for queue in figures.queues if queue.failing][:EACH],
        }  # fmt: skip
        yield Concern(Kind.OUTBOX_LATE, "outbox", facts)


def _troubled(told: Sequence[WorkerTrouble]) -> Iterator[Concern]:
    for trouble in told[:EACH]:
        facts = {"part": trouble.part, "error": trouble.error, "seen_by": trouble.where}
        yield Concern(Kind.WORKER_TROUBLED, trouble.part, facts)


def _lost(board: Board) -> Iterator[Concern]:
    """Those with jobs first: their work waits."""
    for worker in sorted(board.lost, key=lambda worker: worker.busy == 0)[:EACH]:
        facts = {
            "worker": str(worker.id), "name": worker.name, "state": worker.state, "seen_ago": worker.seen_ago,
            "jobs": worker.busy, "returns_in": worker.returns_in,
        }  # fmt: skip
        yield Concern(Kind.WORKER_LOST, str(worker.id), facts)
    if board.strays:
        first = min((job.returns_in for job in board.strays if job.returns_in is not None), default=None)
        facts = {"worker": "", "name": None, "state": "Offline", "seen_ago": None}
        yield Concern(Kind.WORKER_LOST, "", facts | {"jobs": len(board.strays), "returns_in": first})


def _unserved(depths: Sequence[Depth]) -> Iterator[Concern]:
    for depth in [depth for depth in depths if depth.unserved][:EACH]:
        facts = {"queue": depth.queue, "waiting": depth.waiting, "estimated": depth.estimated}
        yield Concern(Kind.QUEUE_UNSERVED, depth.queue, facts | {"oldest_for": depth.oldest_for})


def _unknown() -> Iterator[Concern]:
    for one in unserved():
        facts = {
            "type": one.type, "queue": one.queue, "waiting": one.jobs, "at_least": one.at_least, "since": one.since,
            "since_for": one.since_for, "fails_in": one.fails_in,
        }  # fmt: skip
        yield Concern(Kind.TYPE_UNKNOWN, f"{one.queue}:{one.type}", facts)


def _circuits() -> Iterator[Concern]:
    for one in circuits(limit=EACH, idle=False):
        facts = {
            "type": one.type, "state": one.state, "opened_at": one.opened_at, "open_for": one.open_for,
            "retry_in": one.retry_in, "failures": one.failures, "executions": one.executions, "span": one.span,
            "probe": one.probe and str(one.probe), "waiting": one.parked, "at_least": one.at_least,
        }  # fmt: skip
        yield Concern(Kind.CIRCUIT_OPEN, one.type, facts)


def _suspects() -> Iterator[Concern]:
    for job, type_name, queue, state, lost_count, _ in _rows(SUSPECTS):
        facts = {"job": str(job), "type": type_name, "queue": queue, "state": state, "lost_count": lost_count}
        yield Concern(Kind.SUSPECT, str(job), facts)


def _modules(board: Board) -> Iterator[Concern]:
    for broken in broken_modules(board.workers)[:EACH]:
        facts = {"module": broken.module, "error": broken.error, "where": sorted(set(broken.where))}
        yield Concern(Kind.MODULE_BROKEN, broken.module, facts)


def _handlers(board: Board) -> Iterator[Concern]:
    for stuck in stuck_handlers(board.workers)[:EACH]:
        facts = {"worker": stuck.worker, "type": stuck.handler, "job": stuck.job, "error": stuck.error, "at": stuck.at}
        yield Concern(Kind.HANDLER_STUCK, stuck.job, facts)


def _causes() -> Iterator[Concern]:
    for fingerprint, added, last_at, last_ago, type_name, error_type, message, more in _rows(GREW, letters=LETTERS):
        facts = {
            "fingerprint": fingerprint, "type": type_name, "error_type": error_type, "message": message,
            "added": added, "at_least": more, "last_at": last_at, "last_ago": last_ago,
        }  # fmt: skip
        yield Concern(Kind.CAUSE_GREW, fingerprint, facts)


def _paused(board: Board, depths: Sequence[Depth]) -> Iterator[Concern]:
    queues = {depth.queue: depth for depth in depths}
    for pause in board.pauses[:EACH]:
        depth = queues.get(pause.value) if pause.scope == "queue" else None
        facts = {
            "scope": pause.scope, "value": pause.value, "reason": pause.reason, "who": pause.who, "since": pause.since,
            "since_for": pause.since_for, "until": pause.until, "until_in": pause.until_in,
            "waiting": depth.waiting if depth else None, "estimated": bool(depth and depth.estimated),
            "oldest_for": depth.oldest_for if depth else None,
        }  # fmt: skip
        yield Concern(Kind.PAUSED, f"{pause.scope}:{pause.value}", facts)
