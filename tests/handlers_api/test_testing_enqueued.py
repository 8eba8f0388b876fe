"""turno.testing: what waits, demanded and ruled out."""

from datetime import UTC, datetime, timedelta
from unittest.mock import ANY

import pytest
from pydantic import BaseModel

from jobs.conf import overridden
from jobs.errors import UnknownType
from turno.handlers import job_type
from turno.jobs import enqueue
from turno.testing import assert_enqueued, drain, enqueued, refute_enqueued

pytestmark = pytest.mark.django_db
NOON = datetime(2099, 1, 31, 12, tzinfo=UTC)


class Mail(BaseModel):
    to: str
    copies: int = 1
    parts: list[dict] = []


@pytest.fixture(autouse=True)
def send(types):
    @job_type("mail.send", queue="mail")
    def send(ctx, payload: Mail):
        return payload.to

    job_type("mail.sort")(lambda ctx: None)
    return send


def test_the_jobs_that_wait_are_given_as_they_are(send):
    first = enqueue("mail.send", {"to": "ana"}, tags=["a", "b"], priority=3, unique_key="one")
    enqueue("mail.sort", run_at=NOON)
    sending, sorting = enqueued()
    assert (sending.id, sending.type, sending.queue) == (first.id, "mail.send", "mail")
    assert (sending.payload, sending.priority, sending.unique_key) == ({"to": "ana"}, 3, "one")
    assert (sending.tags, sending.state, sending.run_at, sending.delay) == (["a", "b"], "Enqueued", None, 0)
    assert (sorting.state, sorting.waiting_for, sorting.run_at) == ("Scheduled", "due", NOON)
    assert enqueued(send) == [sending]
    assert assert_enqueued("mail.send") == [sending]


@pytest.mark.parametrize(
    "asked",
    [
        {},
        {"payload": {"to": "ana"}},
        {"payload": {"parts": [{"name": "a"}]}},
        {"payload": Mail(to="ana", copies=2, parts=[{"name": "a", "size": 7}])},
        {"payload": {"copies": lambda copies: copies > 1}},
        {"payload": lambda payload: payload["to"].startswith("a")},
        {"payload": {"to": ANY}},
        {"queue": "mail", "priority": 3, "unique_key": "one"},
        {"tags": ["b"]},
        {"tags": []},
        {"delay": 60},
        {"delay": timedelta(minutes=1)},
        {"delay": 60, "payload": {"to": "ana"}, "count": 1},
    ],
)
def test_what_is_asked_fits(asked):
    payload = {"to": "ana", "copies": 2, "parts": [{"name": "a", "size": 7}]}
    enqueue("mail.send", payload, tags=["a", "b"], priority=3, unique_key="one", delay=60)
    assert len(assert_enqueued("mail.send", **asked)) == 1
    if "count" not in asked:
        with pytest.raises(AssertionError, match="found 1"):
            refute_enqueued("mail.send", **asked)


@pytest.mark.parametrize(
    ("asked", "problem"),
    [
        ({"payload": {"to": "eva"}}, "payload.to: expected 'eva', got 'ana'"),
        ({"payload": {"cc": "ana"}}, "payload.cc: missing"),
        ({"payload": {"parts": [{"name": "b"}]}}, "payload.parts.0.name: expected 'b', got 'a'"),
        ({"payload": {"parts": []}}, "payload.parts: expected [], got [{'name': 'a'}]"),
        ({"payload": {"copies": lambda copies: copies > 1}}, "payload.copies: <lambda> says no to 1"),
        ({"queue": "post"}, "queue: expected 'post', got 'mail'"),
        ({"priority": 1}, "priority: expected 1, got 0"),
        ({"tags": ["a", "c"]}, "tags: expected ['c'] among ['a']"),
        ({"unique_key": "one"}, "unique_key: expected 'one', got None"),
        ({"delay": 60}, "delay: expected 60 s, got 0 s"),
        ({"run_at": NOON}, "run_at: expected 2099-01-31T12:00:00+00:00, got None"),
    ],
)
def test_a_failure_says_what_is_wrong_with_what_waits(asked, problem):
    enqueue("mail.send", {"to": "ana", "copies": 1, "parts": [{"name": "a"}]}, tags=["a"])
    refute_enqueued("mail.send", **asked)
    assert enqueued("mail.send", **asked) == []
    with pytest.raises(AssertionError) as failure:
        assert_enqueued("mail.send", **asked)
    told = str(failure.value).splitlines()
    assert told[0].startswith("No such job waits: type='mail.send', ")
    assert told[1] == "Waiting: 1, the nearest first"
    assert told[3:] == [f"    {problem}"]


def test_the_nearest_is_told_first_and_other_types_last():
    enqueue("mail.sort")
    enqueue("mail.send", {"to": "eva"}, queue="post")
    enqueue("mail.send", {"to": "eva"})
    with pytest.raises(AssertionError) as failure:
        assert_enqueued("mail.send", payload={"to": "ana"}, queue="mail")
    jobs = [line.strip() for line in str(failure.value).splitlines() if line.startswith("  mail")]
    assert jobs == [
        'mail.send queue=mail priority=0 {"to": "eva"}',
        'mail.send queue=post priority=0 {"to": "eva"}',
        "mail.sort queue=default priority=0 {}",
    ]


def test_an_instant_may_be_given_as_one_or_as_text():
    enqueue("mail.sort", run_at=NOON)
    assert_enqueued("mail.sort", run_at=NOON)
    assert_enqueued("mail.sort", run_at="2099-01-31T13:00:00+01:00")
    refute_enqueued("mail.sort", run_at=NOON + timedelta(seconds=2))
    refute_enqueued("mail.sort", delay=0)


def test_a_number_of_jobs_may_be_demanded():
    assert_enqueued("mail.sort", count=0)
    for _ in range(2):
        enqueue("mail.sort")
    assert len(assert_enqueued("mail.sort", count=2)) == 2
    with pytest.raises(AssertionError, match=r"Expected 3 of type='mail\.sort', found 2\."):
        assert_enqueued("mail.sort", count=3)


def test_where_nothing_waits_that_is_said():
    with pytest.raises(AssertionError, match=r"(?s)^No such job waits: any\..No job waits at all\.$"):
        assert_enqueued()
    refute_enqueued()


def test_what_ran_waits_no_more():
    enqueue("mail.send", {"to": "ana"})
    assert drain().results == ["ana"]
    refute_enqueued("mail.send")


def test_a_long_payload_is_cut_in_the_text_of_a_failure():
    enqueue("mail.send", {"to": "a" * 5000})
    with pytest.raises(AssertionError) as failure:
        refute_enqueued()
    assert len(str(failure.value)) < 400


@pytest.mark.parametrize(
    ("asked", "kind", "text"),
    [
        ({"type": "mail.sned"}, UnknownType, r"mail\.send"),
        ({"type": print}, TypeError, "is no handler"),
        ({"colour": 1}, TypeError, "colour: no such criterion; expected one of type, payload, queue"),
        ({"tags": "a"}, TypeError, "tags: expected a list of text, got str"),
        ({"run_at": NOON.replace(tzinfo=None)}, ValueError, "with its offset from UTC"),
        ({"run_at": 7}, TypeError, "run_at: expected a datetime or its ISO 8601 text, got int"),
        ({"run_at": "noon"}, ValueError, "noon"),
        ({"delay": "60"}, TypeError, "delay: expected seconds or a timedelta, got str"),
        ({"delay": -1}, ValueError, "delay: expected no less than zero"),
    ],
)
@pytest.mark.parametrize("call", [assert_enqueued, refute_enqueued, enqueued])
def test_what_cannot_be_asked_is_refused_by_name(call, asked, kind, text):
    with pytest.raises(kind, match=text):
        call(**asked)


def test_a_type_without_a_handler_here_may_be_asked_for_where_such_are_accepted():
    with overridden(api={"unknown_types": "accept"}):
        enqueue("elsewhere.done", {"n": 1})
        assert_enqueued("elsewhere.done", payload={"n": 1})
        refute_enqueued("elsewhere.else")
