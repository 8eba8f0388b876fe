"""What needs a person: each kind with its facts, the worst first, and nothing of a house that is well."""

import sys
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest

from jobs import health
from jobs.conf import overridden
from jobs.loading import LoadProblem
from jobs.queries import Concern, Kind, attention, board, depths
from jobs.registry import catalogue
from tests.queries.house import letter, message, pause, running, worker
from tests.transitions import rows

pytestmark = pytest.mark.django_db


def look() -> list[Concern]:
    seen = board({})
    return attention(seen, depths(seen))


def only(kind: Kind) -> Concern:
    (found,) = look()
    assert found.kind is kind
    return found


def kinds(found: Sequence[Concern]) -> list[str]:
    return [str(concern.kind) for concern in found]


def test_a_house_that_is_well_needs_nobody():
    worker("a")
    worker("leaving", state="Draining")
    rows.make_job()
    rows.make_job("Scheduled")
    letter(age=7200)
    rows.execute("INSERT INTO turno.circuits (type, state) VALUES ('x', 'closed')")
    assert look() == []


def test_a_silent_worker_says_what_it_holds_and_when_that_returns():
    owner = worker("w-5", seen=48)
    running(owner, 1, lease_expires_at=rows.ahead(12))
    running(owner, 2, lease_expires_at=rows.ahead(20))
    facts = only(Kind.WORKER_LOST).facts
    assert (facts["worker"], facts["name"], facts["state"], facts["jobs"]) == (str(owner), "w-5", "Silent", 2)
    assert 48 <= facts["seen_ago"] < 60
    assert 20 < facts["returns_in"] <= 27


def test_a_silent_worker_without_jobs_is_a_concern_after_those_with_some():
    worker("a-idle", seen=20)
    running(worker("b-busy", seen=20))
    found = look()
    assert [concern.facts["name"] for concern in found] == ["b-busy", "a-idle"]
    assert found[1].facts["returns_in"] is None


def test_jobs_without_any_worker_are_one_concern():
    running(uuid4())
    running(uuid4())
    found = only(Kind.WORKER_LOST)
    assert (found.facts["name"], found.facts["jobs"]) == (None, 2)


def test_a_queue_that_nobody_serves_says_how_deep_and_how_old_it_is():
    worker("a", {"default": 1})
    rows.make_jobs(3, queue="lonely", enqueued_at=rows.ago(100))
    facts = only(Kind.QUEUE_UNSERVED).facts
    assert (facts["queue"], facts["waiting"], facts["estimated"]) == ("lonely", 3, False)
    assert facts["oldest_for"] >= 100


def test_a_job_that_lost_its_worker_twice_is_a_suspect():
    suspect = rows.make_job("Scheduled", lost_count=2, waiting_for="retry", run_at=rows.ahead(9), queue="q", type="t")
    worker("a", {"default": 2})
    rows.make_job(lost_count=1)
    rows.make_job("Succeeded", lost_count=2)
    found = only(Kind.SUSPECT)
    assert found.facts == {
        "job": str(suspect.id), "type": "t", "queue": "q", "state": "Scheduled", "lost_count": 2,
    }  # fmt: skip


def test_broken_modules_and_stuck_handlers_are_said_by_live_workers(monkeypatch):
    monkeypatch.setattr(catalogue, "problems", lambda: [LoadProblem("mine.handlers", "ImportError: <x>")])
    broken = {"module": "mine.handlers", "error": "ImportError: <x>"}
    stuck = {"handler": "file.process", "job": "01", "error": "asked to stop", "at": "x.py:3 f"}
    worker("a", problems=[broken, stuck, "no object", 7, {"neither": 1}])
    worker("b", problems=[broken])
    worker("gone", problems=[stuck], seen=1000, state="Offline")
    module, handler = look()
    assert module.facts == {**broken, "where": ["a", "b", "web"]}
    expected = {"worker": "a", "type": "file.process", "job": "01", "error": "asked to stop", "at": "x.py:3 f"}
    assert handler.facts == expected


def test_a_worker_whose_problems_are_no_list_has_none():
    worker("a", problems={"module": "x"})
    assert look() == []


def test_a_cause_that_grew_in_the_last_hour_says_by_how_much_with_its_newest_letter():
    letter("f1", age=7200)
    letter("f1", age=100, error_type="Old", error_message="old")
    letter("f1", age=10, error_type="TimeoutError", error_message="no answer", type="integration.sync")
    letter("f2", age=50, error_type=None, error_message=None)
    letter("f3", age=50, resolved_how="requeued")
    first, second = look()
    facts = first.facts
    assert (facts["fingerprint"], facts["added"], facts["at_least"]) == ("f1", 2, False)
    assert (facts["type"], facts["error_type"], facts["message"]) == ("integration.sync", "TimeoutError", "no answer")
    assert 10 <= facts["last_ago"] < 30
    assert (second.subject, second.facts["message"]) == ("f2", None)


def test_more_new_letters_than_are_looked_at_are_said_to_be_more(monkeypatch):
    monkeypatch.setattr(sys.modules["jobs.queries.attention"], "LETTERS", 3)
    letter("f", age=5)
    letter("f", age=5, resolved_how="requeued")
    letter("f", age=60)
    assert only(Kind.CAUSE_GREW).facts["at_least"]
    monkeypatch.setattr(sys.modules["jobs.queries.attention"], "LETTERS", 4)
    facts = only(Kind.CAUSE_GREW).facts
    assert (facts["added"], facts["at_least"]) == (2, False)


def test_of_each_kind_there_are_so_many_at_most(monkeypatch):
    monkeypatch.setattr(sys.modules["jobs.queries.attention"], "EACH", 2)
    for n in range(4):
        letter(f"f{n}")
        worker(f"silent-{n}", seen=20)
        rows.make_job(queue=f"lonely-{n}", lost_count=2)
        pause("tag", f"t{n}")
    expected = [Kind.WORKER_LOST, Kind.QUEUE_UNSERVED, Kind.SUSPECT, Kind.CAUSE_GREW, Kind.PAUSED]
    assert kinds(look()) == [str(kind) for kind in expected for _ in range(2)]


def test_a_pause_is_a_warning_and_that_of_a_queue_says_what_waits():
    worker("a", {"reports": 2})
    pause("queue", "reports", reason="deploy", paused_by="ana", created_at=rows.ago(720))
    pause("tag", "<b>customer</b>")
    rows.make_jobs(84, queue="reports", enqueued_at=rows.ago(712))
    queue, tag = look()
    assert (queue.kind, queue.severity) == (Kind.PAUSED, "warning")
    assert (queue.facts["who"], queue.facts["waiting"]) == ("ana", 84)
    assert queue.facts["oldest_for"] >= 712
    assert (tag.facts["value"], tag.facts["waiting"]) == ("<b>customer</b>", None)


def test_the_worst_comes_first_and_each_has_a_name_of_its_own():
    pause("queue", "default")
    letter()
    rows.make_job("Scheduled", lost_count=2)
    rows.execute(
        f"INSERT INTO turno.circuits (type, state, opened_at, retry_at) VALUES ('x', 'open', now(), {rows.ahead(9)})"
    )
    rows.make_job(queue="lonely")
    worker("a", {"default": 2}, problems=[{"module": "m", "error": "one"}, {"module": "m", "error": "two"}])
    worker("silent", seen=20)
    found = look()
    order = [
        "worker_lost", "queue_unserved", "circuit_open", "suspect", "module_broken", "module_broken", "cause_grew",
        "paused",
    ]  # fmt: skip
    assert kinds(found) == order
    keys = [concern.key for concern in found]
    assert len(set(keys)) == len(keys)
    assert all(key.replace("-", "").isalnum() for key in keys)
    assert [concern.key for concern in look()] == keys
    assert {concern.severity for concern in found[:-1]} == {"failure"}


RABBITMQ = {"transport": "rabbitmq", "urls": ("amqp://u:secret@127.0.0.1:5672/",)}
THREE = ("redis://a", "redis://b", "redis://c")


def away(name: str, message: str = "does not answer", **more: Any) -> health.Report:
    """What this process found of a server that does not answer."""
    since = datetime.now(UTC) - timedelta(seconds=180)
    return health.Report(name, False, message, since, None, needed=False, **more)


def well(name: str) -> health.Report:
    return health.Report(name, True, "", datetime.now(UTC), 0.01, needed=False)


def look_with(*reports: health.Report) -> list[Concern]:
    seen = board({})
    return attention(seen, depths(seen), reports)


def test_a_broker_that_is_away_says_who_sees_it_and_what_waits():
    said = "RabbitMQ does not answer"
    worker("w-1", problems=[{"part": "broker", "error": said}])
    worker("w-2", problems=[{"part": "broker", "error": said}])
    worker("gone", state="Offline", problems=[{"part": "broker", "error": said}])
    for _ in range(3):
        message(rows.make_job(), age=100)
    with overridden(messaging=RABBITMQ):
        (found,) = look_with(away("broker", where=("127.0.0.1:5672",)), away("outbox"))
    facts = found.facts
    assert (found.kind, found.severity) == (Kind.BROKER_AWAY, "failure")
    assert (facts["transport"], facts["servers"], facts["said"]) == ("rabbitmq", ("127.0.0.1:5672",), [said])
    assert facts["seen_by"] == ["web", "w-1", "w-2"]
    assert facts["waiting"] == 3
    assert facts["oldest_for"] >= 100
    assert 180 <= facts["down_for"] < 200


def test_what_only_a_worker_sees_of_the_broker_is_told_in_its_words():
    worker("w-1", problems=[{"part": "broker", "error": "the broker refuses the user"}])
    with overridden(messaging=RABBITMQ):
        (found,) = look_with(well("broker"))
    assert (found.kind, found.facts["error"]) == (Kind.WORKER_TROUBLED, "the broker refuses the user")
    assert found.facts["seen_by"] == ["w-1"]


def test_messages_that_wait_too_long_for_a_broker_that_answers_are_a_concern():
    worker("a")
    message(rows.make_job(), age=59)
    with overridden(messaging=RABBITMQ):
        assert look_with(well("broker")) == []
        message(rows.make_job(), age=61)
        (found,) = look_with(well("broker"))
        assert (found.kind, found.facts["waiting"], found.facts["failing"]) == (Kind.OUTBOX_LATE, 2, 0)
    assert look_with() == []  # PostgreSQL carries the work: nobody waits for these


def test_a_message_that_the_broker_refuses_is_a_concern_at_once_and_also_while_it_is_away():
    worker("a")
    message(rows.make_job(), failures=1, last_error="no queue 'turno-x'")
    with overridden(messaging=RABBITMQ):
        (found,) = look_with()
        assert (found.kind, found.facts["failing"]) == (Kind.OUTBOX_LATE, 1)
        assert found.facts["last_error"] == "no queue 'turno-x'"
        assert kinds(look_with(away("broker"))) == ["broker_away", "outbox_late"]


@pytest.mark.parametrize(
    ("down", "quorum", "severity"), [(1, True, "warning"), (2, False, "failure"), (3, False, "failure")]
)
def test_redis_with_and_without_a_quorum(down, quorum, severity):
    worker("a")
    report = away("redis", values={"down": down, "servers": 3}, where=("b:6379",))
    with overridden(redis={"urls": THREE, "locks": "on", "on_failure": "defer"}):
        (found,) = look_with(report)
    assert (found.kind, found.severity) == (Kind.REDIS_AWAY, severity)
    assert (found.facts["down"], found.facts["servers"], found.facts["quorum"]) == (down, 3, quorum)
    assert (found.facts["locks"], found.facts["on_failure"], found.facts["names"]) == (True, "defer", ("b:6379",))


def test_a_redis_that_only_carries_the_screens_news_is_a_warning():
    worker("a")
    with overridden(redis={"urls": THREE[:1]}):
        (found,) = look_with(away("redis", values={"down": 1, "servers": 1}))
    assert (found.severity, found.facts["locks"]) == ("warning", False)


def test_what_workers_say_of_their_parts_is_told_once_and_not_beside_what_is_seen_here():
    for name in ("w-2", "w-1"):
        worker(name, problems=[{"part": "processes", "error": "no memory"}, {"part": "redis", "error": "no quorum"}])
    processes, redis = look()
    assert (processes.kind, processes.facts["part"]) == (Kind.WORKER_TROUBLED, "processes")
    assert (processes.facts["error"], processes.facts["seen_by"]) == ("no memory", ["w-1", "w-2"])
    assert (redis.kind, redis.facts["error"]) == (Kind.WORKER_TROUBLED, "no quorum")
    with overridden(redis={"urls": THREE, "locks": "on"}):
        redis, processes = look_with(away("redis", values={"down": 2, "servers": 3}))
    assert (redis.kind, redis.facts["seen_by"], redis.facts["said"]) == (
        Kind.REDIS_AWAY, ["web", "w-1", "w-2"], []
    )  # fmt: skip
    assert processes.facts["part"] == "processes"
