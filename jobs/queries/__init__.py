"""Every read that the API or a screen makes. Reads take no locks and count no table that grows without bound."""

from jobs.queries.attention import Concern, Kind, attention
from jobs.queries.board import Board, BoardWorker, board
from jobs.queries.bounded import Count
from jobs.queries.catalogue import TypeRow, job_types
from jobs.queries.causes import Cause, CausePage, LetterCounts, causes, letter_counts
from jobs.queries.circuits import CircuitRow, circuit, circuits
from jobs.queries.counters import counter, retained
from jobs.queries.counts import count, guess, newer, tabs, total
from jobs.queries.cursor import NEWEST, OLDEST, Cursor
from jobs.queries.depths import Depth, depths
from jobs.queries.durations import durations
from jobs.queries.figures import Ended, Past, Stats, past, stats
from jobs.queries.fleet import (
    BrokenModule,
    StuckHandler,
    WorkerFigures,
    WorkerRow,
    WorkerTrouble,
    broken_modules,
    stuck_handlers,
    troubles,
    worker_figures,
    workers,
)
from jobs.queries.glance import Glance, glance
from jobs.queries.jobfilter import JobFilter
from jobs.queries.joblist import JobList, job_list, now, payloads, rows
from jobs.queries.joblog import LogKey, LogLines, log_lines, log_size
from jobs.queries.letterfilter import LetterFilter
from jobs.queries.letters import Letter, LetterCursor, LetterPage, letters
from jobs.queries.listing import Page, page
from jobs.queries.onejob import Detail, LogPage, detail, logs
from jobs.queries.outbox import Outbox, outbox
from jobs.queries.pauses import PauseRow, pauses
from jobs.queries.promises import Broken, Hour, Look, Promises, Storm, broken_invariants, promises
from jobs.queries.queues import QueueRow, queues
from jobs.queries.rhythm import Minute, rhythm
from jobs.queries.seats import QueueUse, Running, Seat
from jobs.queries.unserved import Unserved, unserved
from jobs.queries.waiting import Hindrances, hindrances
from jobs.queries.walking import Walked, walk

__all__ = [
    "NEWEST",
    "OLDEST",
    "Board",
    "BoardWorker",
    "Broken",
    "BrokenModule",
    "Cause",
    "CausePage",
    "CircuitRow",
    "Concern",
    "Count",
    "Cursor",
    "Depth",
    "Detail",
    "Ended",
    "Glance",
    "Hindrances",
    "Hour",
    "JobFilter",
    "JobList",
    "Kind",
    "Letter",
    "LetterCounts",
    "LetterCursor",
    "LetterFilter",
    "LetterPage",
    "LogKey",
    "LogLines",
    "LogPage",
    "Look",
    "Minute",
    "Outbox",
    "Page",
    "Past",
    "PauseRow",
    "Promises",
    "QueueRow",
    "QueueUse",
    "Running",
    "Seat",
    "Stats",
    "Storm",
    "StuckHandler",
    "TypeRow",
    "Unserved",
    "Walked",
    "WorkerFigures",
    "WorkerRow",
    "WorkerTrouble",
    "attention",
    "board",
    "broken_invariants",
    "broken_modules",
    "causes",
    "circuit",
    "circuits",
    "count",
    "counter",
    "depths",
    "detail",
    "durations",
    "glance",
    "guess",
    "hindrances",
    "job_list",
    "job_types",
    "letter_counts",
    "letters",
    "log_lines",
    "log_size",
    "logs",
    "newer",
    "now",
    "outbox",
    "page",
    "past",
    "pauses",
    "payloads",
    "promises",
    "queues",
    "retained",
    "rhythm",
    "rows",
    "stats",
    "stuck_handlers",
    "tabs",
    "total",
    "troubles",
    "unserved",
    "walk",
    "worker_figures",
    "workers",
]
