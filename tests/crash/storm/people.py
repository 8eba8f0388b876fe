"""What people do to the jobs of a storm: cancel, requeue, pause, resume, and what else the screens offer."""

import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import timedelta
from uuid import UUID

from django.db import Error, connection
from django.utils import timezone

from jobs import flow, operations, schedules
from jobs.errors import Refused
from jobs.schedules import Wanted
from tests.crash.storm.orders import TAG
from tests.crash.storm.plan import Deed

WHO = "storm"
SEEN = 300  # jobs that a person sees at once
PAUSED = {
    "pause a queue": [("queue", "critical")],
    "pause a tag": [("tag", TAG)],
    "pause a type": [("type", "storm.thread"), ("type", "storm.limited")],
    "pause a key": [("key", f"key-{limit}-{n}") for limit in (1, 2, 3) for n in (1, 2)],
}
EACH_SECOND = "* * * * * *"
# The first one leaves no instant out.
RECURRING = {
    "storm-all": Wanted("storm-all", "storm.recurring", EACH_SECOND, overlap="allow", misfire="all"),
    "storm-skip": Wanted("storm-skip", "storm.recurring", EACH_SECOND, payload={"hold": 1.2}),
    "storm-queue": Wanted("storm-queue", "storm.recurring", "*/2 * * * * *", overlap="queue", payload={"hold": 0.3}),
}
WHOLE = "storm-all"


def rows(sql: str, *params: object) -> list[tuple[object, ...]]:
    """The rows of a question of a person's."""
    with connection.cursor() as cursor:
        cursor.execute(sql, params)
        return cursor.fetchall()


def _jobs(where: str) -> list[UUID]:
    return [id_ for (id_,) in rows(f"SELECT id FROM turno.jobs WHERE {where} ORDER BY id DESC LIMIT {SEEN}")]  # type: ignore[misc]


def _letters() -> list[UUID]:
    sql = f"SELECT id FROM turno.dead_letters WHERE resolved_at IS NULL ORDER BY id DESC LIMIT {SEEN}"
    return [id_ for (id_,) in rows(sql)]  # type: ignore[misc]


def _recurring() -> list[UUID]:
    return [id_ for (id_,) in rows("SELECT id FROM turno.recurring_jobs ORDER BY name")]  # type: ignore[misc]


WAITS = "state IN ('Enqueued', 'Scheduled')"
# By deed: among whom one is picked, and what is done to it.
ON_ONE: dict[str, tuple[Callable[[], list[UUID]], Callable[[UUID], object]]] = {
    "cancel what runs": (lambda: _jobs("state = 'Processing'"), lambda id_: operations.cancel(id_, actor=WHO)),
    "cancel what waits": (lambda: _jobs(WAITS), lambda id_: operations.cancel(id_, actor=WHO)),
    "requeue": (lambda: _jobs("state IN ('Failed', 'Cancelled')"), lambda id_: operations.requeue(id_, actor=WHO)),
    "run now": (lambda: _jobs("state = 'Scheduled'"), lambda id_: operations.run_now(id_, actor=WHO)),
    "reprioritise": (lambda: _jobs(WAITS), lambda id_: operations.reprioritise(id_, 7, actor=WHO)),
    "requeue a letter": (_letters, lambda id_: operations.requeue_letter(id_, actor=WHO)),
    "discard a letter": (_letters, lambda id_: operations.discard_letter(id_, actor=WHO)),
    "trigger": (_recurring, lambda id_: schedules.trigger(id_, actor=WHO)),
}


def picked[T](found: Sequence[T], chance: float) -> T | None:
    """The one that the chance (0..1) says, or None where there is none."""
    return found[min(len(found) - 1, int(chance * len(found)))] if found else None


class Person(threading.Thread):
    """Does the deeds when their time has come; `done` counts them by name. A refusal is an answer like another."""

    def __init__(self, deeds: Sequence[Deed], began: float) -> None:
        super().__init__(name="person", daemon=True)
        self._deeds, self._began = deeds, began
        self.done: Counter[str] = Counter()
        self.failed: Exception | None = None
        self.over = threading.Event()

    def run(self) -> None:
        for deed in self._deeds:
            if self.over.wait(max(0.0, self._began + deed.at - time.monotonic())):
                break
            try:
                if self._do(deed):
                    self.done[deed.name] += 1
            except Error:  # the database is away
                with suppress(Error):
                    connection.close()
            except Refused:
                self.done[deed.name] += 1
            except Exception as error:  # noqa: BLE001  (told by who joins it)
                self.failed = error
                break
        connection.close()

    def _do(self, deed: Deed) -> bool:
        if deed.name in PAUSED:
            scope, value = PAUSED[deed.name][int(deed.chance * len(PAUSED[deed.name]))]
            until = None if deed.chance < 0.5 else timezone.now() + timedelta(seconds=deed.lasts)
            flow.pause(scope, value, reason="a storm", until=until, actor=WHO)
            if until is None:
                self.over.wait(deed.lasts)  # it is the same person who resumes it
                flow.resume(scope, value, actor=WHO)
            return True
        find, do = ON_ONE[deed.name]
        one = picked(find(), deed.chance)
        if one is not None:
            do(one)
        return one is not None


def begin() -> None:
    """What is there before the first errand: the schedules."""
    for wanted in RECURRING.values():
        schedules.create(wanted, actor=WHO)


def end() -> None:
    """What people do when the storm is over: nothing is paused, and nothing fires any more."""
    for scope, value in rows("SELECT scope, value FROM turno.pauses"):
        with suppress(Refused):
            flow.resume(str(scope), str(value), actor=WHO)
    for id_ in _recurring():
        schedules.disable(id_, actor=WHO)
