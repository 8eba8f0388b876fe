"""Whoever hands the referee of a storm a spoiled log, or spoiled tables, hears which rule was broken, no more."""

from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from jobs.models import StormReport
from tests.crash.storm.clients import ACCEPTED, DOUBTFUL, MERGED, REFUSED
from tests.crash.storm.evidence import Evidence, JobRow, Line, read
from tests.crash.storm.people import WHOLE
from tests.crash.storm.referee import RULES, broken, verdicts
from tests.crash.storm.report import Report

NOON = datetime(2026, 11, 30, 12, tzinfo=UTC)
# Two executions of `a`, whose worker was lost; `b`, `c` and `d` on one key, in turn; `e` and `f` of a limited type;
# `g` is a child of `a`; `h` and `i` were fired; `once` was lost and stays so.
LOG = """
start a 1 10 1.0
beat a 1 10 1.1
start b 1 11 1.2
end b 1 11 1.3
start c 1 11 1.4
start a 2 12 1.5
end c 1 11 1.6
end a 2 12 1.7
start d 1 11 1.8
start e 1 11 1.9
start f 1 11 2.0
end d 1 11 2.1
end e 1 11 2.2
end f 1 11 2.3
start g 1 11 2.4
end g 1 11 2.5
start h 1 11 2.6
end h 1 11 2.7
start i 1 11 2.8
end i 1 11 2.9
start once 1 11 3.0
"""


def row(id_, *, state="Succeeded", executions=1, type_="storm.async", **more):
    values = {
        "id": id_, "order": f"order-{id_}", "type": type_, "state": state, "executions": executions,
        "at_most_once": False, "key": None, "limit": None, "result": executions if state == "Succeeded" else None,
        "schedule": None, "fired_for": None, "requeues": 0,
    }  # fmt: skip
    return JobRow(**(values | more))


def evidence(log=LOG, **more):
    """What a storm leaves in which nothing went wrong."""
    key = {"key": "k", "limit": 1}
    fired = [{"order": None, "schedule": WHOLE, "fired_for": NOON + timedelta(seconds=n)} for n in range(2)]
    jobs = [
        row("a", executions=2), row("b", **key), row("c", **key), row("d", **key), row("e", type_="storm.limited"),
        row("f", type_="storm.limited"), row("g"), row("h", **fired[0]), row("i", **fired[1]),
        row("once", state="Failed", at_most_once=True),
    ]  # fmt: skip
    attempts = {(job.id, 1): "Succeeded" for job in jobs}
    attempts |= {("a", 1): "WorkerLost", ("a", 2): "Succeeded", ("once", 1): "WorkerLost"}
    orders = {job.order: ACCEPTED for job in jobs if job.order}
    orders |= {"gone": REFUSED, "who knows": DOUBTFUL, "taken in": MERGED}
    values = {
        "jobs": {job.id: job for job in jobs}, "attempts": attempts, "parents": {"g": ["a"]}, "orders": orders,
        "left_over": {"default": 0}, "ends": [],
    }  # fmt: skip
    return Evidence(read(log.split("\n")[1:-1]), **(values | more))


def changed(id_, **columns):
    """Another word of the table about one job."""
    jobs = evidence().jobs
    return evidence(jobs=jobs | {id_: jobs[id_]._replace(**columns)})


def with_attempts(**outcomes):
    """Other rows: `a1="Failed"`; None takes one away."""
    attempts = evidence().attempts | {(name[:-1], int(name[-1])): outcome for name, outcome in outcomes.items()}
    return evidence(attempts={key: outcome for key, outcome in attempts.items() if outcome is not None})


def moved(line, *, before):
    """The log with one line earlier."""
    return evidence(LOG.replace(f"{line}\n", "").replace(before, f"{line}\n{before}"))


def also(*jobs, outcome="WorkerLost"):
    """Jobs that nobody would expect, and how each one's execution ended, which never started."""
    known = evidence()
    attempts = {(job.id, 1): outcome for job in jobs}
    return evidence(jobs=known.jobs | {job.id: job for job in jobs}, attempts=known.attempts | attempts)


SPOILED = [
    ("Each accepted order has its job, and only one", evidence(orders=evidence().orders | {"lost": ACCEPTED})),
    ("Each accepted order has its job, and only one", also(row("x", order="order-a", state="Failed"))),
    (
        "Each accepted order has its job, and only one",
        also(row("x", order="who knows", state="Failed"), row("y", order="who knows", state="Failed")),
    ),
    ("Each job is final", changed("once", state="Processing")),
    ("Each fired instant has one job, and none is left out where none may be", changed("i", fired_for=NOON)),
    (
        "Each fired instant has one job, and none is left out where none may be",
        changed("i", fired_for=NOON + timedelta(seconds=2)),
    ),
    ("Each start line names one execution, and none is there twice", evidence(f"{LOG}start once 1 11 4.0\n")),
    ("Each start line names one execution, and none is there twice", evidence(LOG.replace("start once", "beat once"))),
    ("Each execution is of one process", evidence(LOG.replace("beat a 1 10", "beat a 1 99"))),
    ("No two executions of a job overlap", moved("start a 2 12 1.5", before="beat a 1 10 1.1")),
    ("No more of a key, or of a type with a limit, run at once than may", moved("start c 1 11 1.4", before="end b")),
    (
        "No more of a key, or of a type with a limit, run at once than may",
        changed("d", type="storm.limited", key=None, limit=None),
    ),
    (
        "What may run at most once was repeated by nothing but a person",
        changed("a", at_most_once=True),
    ),
    ("What was rolled back or never committed has no job", also(row("x", order="gone", state="Failed"))),
    ("A child starts when its parents have ended", evidence(parents={"b": ["a"]})),
    ("Each line is of an execution that the tables know", evidence(f"{LOG}start b 2 11 4.0\nend b 2 11 4.1\n")),
    (
        "An execution without a start line was lost, interrupted or stopped before it",
        also(row("x", order=None, state="Failed"), outcome="Failed"),
    ),
    ("What succeeded wrote its last line", evidence(LOG.replace("end b 1 11 1.3\n", ""))),
    (
        "A success shows the result of its last execution, and that execution succeeded",
        changed("a", result=1),
    ),
    (
        "A success shows the result of its last execution, and that execution succeeded",
        with_attempts(a2="Interrupted"),
    ),
    ("Each execution of a job has its row", changed("once", executions=2)),
    ("No message waits when no job does", evidence(left_over={"default": 1})),
    ("Workers that are asked to end do so in order", evidence(ends=["w0 ended with 1"])),
]


def test_where_nothing_went_wrong_every_rule_holds():
    assert broken(verdicts(evidence())) == []


@pytest.mark.parametrize(("rule", "spoiled"), SPOILED, ids=[f"{n}" for n in range(len(SPOILED))])
def test_what_is_spoiled_breaks_its_rule_and_no_other(rule, spoiled):
    [verdict] = broken(verdicts(spoiled))
    assert verdict.rule == rule
    assert verdict.examples


def test_every_rule_can_be_broken():
    assert {rule for rule, _ in SPOILED} == {name for name, _, _ in RULES}


def test_what_a_person_ran_again_may_run_again_and_need_not_wait_for_its_children():
    known = evidence()
    again = changed("a", at_most_once=True, requeues=1)
    assert broken(verdicts(again)) == []
    again.parents = {"b": ["a"]}
    assert broken(verdicts(again)) == []
    assert broken(verdicts(replace(known, parents={"b": ["a"]}))) != []


def reported():
    """A storm in which one job did not end."""
    return Report(
        profile="embedded", seed=1, seconds=60, a_second=20, at=NOON, calm=5, orders={},
        ends={"storm.async": Counter(Failed=3)}, executions={}, missed={}, deeds={}, struck={"a blow": 2},
        machine="A machine.",
        verdicts=verdicts(changed("once", state="Processing")),
    )  # fmt: skip


def test_a_report_says_what_was_broken_and_where():
    report = reported()
    assert not report.ok
    assert "storm.async once is Processing" in report.markdown()
    assert '"Each job is final": 1' in report.line()
    assert replace(report, verdicts=verdicts(evidence())).ok


def test_a_report_is_kept_for_the_screen_of_promises(db):
    reported().keep("default")
    kept = StormReport.objects.get()
    assert (kept.place, kept.seed, kept.jobs, kept.faults) == ("embedded", 1, 3, {"a blow": 2})
    assert [found["name"] for found in kept.found] == ["ended"]


def test_a_line_of_the_log_is_read_as_it_was_written():
    assert read(["start 01-ab 3 42 17.25"]) == [Line("start", "01-ab", 3, 42, 17.25)]
