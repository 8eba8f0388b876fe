"""Nothing that the engine writes about a job lacks words."""

from datetime import timedelta
from uuid import uuid4

import pytest
from django.utils import timezone, translation

from dashboard import bulkwords, timeline
from jobs import wording
from jobs.queries.circuits import CircuitRow
from jobs.queries.gates import Gate, Other, RateUse
from jobs.queries.pauses import PauseRow
from jobs.queries.unserved import Grace
from jobs.queries.waiting import COUNTED, Hindrances, Message
from jobs.reasons import WAITS, why
from jobs.states import PARKED, TIMED, Outcome, Reason, State, Waiting


@pytest.fixture(autouse=True)
def english():
    with translation.override("en"):
        yield


NOW = timezone.now()
JOB = {
    "recurring_name": None, "rerun_of": None, "origin": None, "run_at": NOW + timedelta(seconds=107),
    "state": "Enqueued", "waiting_for": None, "gate": None, "queue": "reports", "type": "report.generate",
    "due_in": 107.0, "id": uuid4(), "concurrency_key": None,
}  # fmt: skip


def change(reason, to_state="Enqueued", **more):
    row = {"id": 1, "at": NOW, "reason": reason, "detail": None, "actor": None, "execution": 1, "to_state": to_state}
    return row | {"from_state": None} | more


@pytest.mark.parametrize("reason", Reason)
def test_every_reason_has_words(reason):
    (step,) = timeline.steps(JOB, [change(str(reason))], {1: ""})
    assert step.said
    assert step.said != str(reason) or reason is Reason.CREATED or reason is Reason.CANCELLED


@pytest.mark.parametrize(
    ("reason", "state"),
    [
        (Reason.PARKED, State.ENQUEUED),
        (Reason.CIRCUIT_OPEN, State.ENQUEUED),
        (Reason.RETRY, State.SCHEDULED),
        (Reason.SNOOZED, State.SCHEDULED),
        (Reason.LOCK_BUSY, State.SCHEDULED),
    ],
)
def test_who_was_parked_is_in_the_queue_and_who_waits_for_an_instant_is_scheduled(reason, state):
    (step,) = timeline.steps(JOB, [change(str(reason), "Scheduled")], {1: ""})
    assert step.state == state


@pytest.mark.parametrize("outcome", Outcome)
def test_every_outcome_has_words_and_a_mark(outcome):
    assert timeline.OUTCOMES[outcome]
    assert timeline.OUTCOME_MARKS[outcome]


def test_whatever_a_job_waits_for_has_words():
    assert set(WAITS) == set(Waiting)


@pytest.mark.parametrize("language", ["pt-br", "en"])
def test_the_words_can_be_said_in_each_language(language):
    with translation.override(language):
        for table in (timeline.REASONS, timeline.OUTCOMES, WAITS):
            assert all(str(words) for words in table.values())


def test_a_reason_of_a_later_version_is_shown_as_it_is():
    assert timeline.steps(JOB, [change("teleported")], {})[0].said == "teleported"


def test_the_time_line_names_the_worker_and_the_wait():
    changes = [
        change("created"),
        change("claimed", "Processing", at=NOW + timedelta(seconds=3)),
        change("retry", "Scheduled", at=NOW + timedelta(seconds=10), detail="no answer"),
    ]
    retry, claimed, created = timeline.steps(JOB, changes, {1: "worker-01"})
    assert claimed.said == "worker-01 took it after 3.0 s in the queue"
    assert retry.said == "another attempt in 1 min 37 s (backoff)"
    assert retry.detail == "no answer"
    assert created.said == "created"


def test_who_made_a_job_is_said_as_it_is_known():
    created = [change("created")]
    assert timeline.steps(JOB | {"origin": "API"}, created, {})[0].said == "created by API"
    assert timeline.steps(JOB | {"recurring_name": "nightly"}, created, {})[0].said == "created by nightly"
    assert timeline.steps(JOB, [change("cancelled", actor="user:ana")], {})[0].by == "ana"


def hindered(**facts):
    blank = {"pauses": [], "queue_served": True, "type_served": True, "ahead": 0, "slots": 4, "busy": 0}
    return Hindrances(**{**blank, "circuit": None, **facts})


def texts(job, found):
    return " ".join(f"{reason.text} {reason.note} {reason.code}" for reason in why(job, found))


@pytest.mark.parametrize("waiting", Waiting)
def test_a_scheduled_job_says_what_it_waits_for(waiting):
    job = JOB | {"state": State.SCHEDULED, "waiting_for": str(waiting), "gate": "x" if waiting in PARKED else None}
    said = why(job, hindered(ahead=None) if waiting in PARKED else None)
    if waiting is not Waiting.CIRCUIT:  # its words are its own
        assert said[0].text == str(WAITS[waiting])
    assert (said[0].left == 107.0) is (waiting in TIMED)


def circuit(**facts):
    blank = {"type": "report.generate", "state": "open", "opened_at": NOW, "open_for": 40.0, "retry_in": 18.0}
    blank |= {"executions": 20, "failures": 12, "span": 30.0, "probe": None, "parked": 3, "at_least": False}
    return CircuitRow(**blank | facts)


def test_a_job_behind_a_breaker_says_why_it_opened_and_what_comes_next():
    job = JOB | {"state": State.SCHEDULED, "waiting_for": "circuit", "gate": "report.generate"}
    [reason] = why(job, hindered(ahead=None, circuit=circuit()))
    assert (reason.text, reason.left) == ("The breaker of its type is open. One job is tried in", 18.0)
    assert reason.note == "12 of 20 executions failed within 30 s."
    half = circuit(state="half_open", retry_in=None, probe=uuid4())
    assert "half-open. 12 of 20 executions failed within 30 s. One job is being tried" in texts(
        job, hindered(ahead=None, circuit=half)
    )
    assert "in a moment" in texts(job, hindered(ahead=None, circuit=circuit(retry_in=0.0)))
    assert "has closed" in texts(job, hindered(ahead=None))


def test_a_queued_job_says_that_the_breaker_of_its_type_is_open_unless_it_is_the_one_that_is_tried():
    assert "The breaker of its type is open" in texts(JOB, hindered(circuit=circuit()))
    tried = circuit(state="half_open", retry_in=None, probe=JOB["id"])
    assert "breaker" not in texts(JOB, hindered(circuit=tried))


def test_a_queued_job_says_what_stands_in_its_way():
    pause = PauseRow("queue", "reports", "the printer", "user:ana", NOW, 720.0, None, None)
    said = texts(JOB, hindered(pauses=[pause], queue_served=False, ahead=COUNTED + 1))
    assert "Queue reports has been paused for 12 min" in said
    assert "the printer · By ana." in said
    assert "--queues reports:4" in said
    assert "More than 1,000 jobs are ahead" in said
    assert "has the type report.generate" in texts(JOB, hindered(type_served=False))
    broken = hindered(type_served=False, unloaded=("shop.jobs, SyntaxError: bad", "shop.more, no module named x"))
    said = "Handler not loadable: shop.jobs, SyntaxError: bad; shop.more, no module named x."
    assert said in texts(JOB, broken)
    assert "All 4 slots" in texts(JOB, hindered(busy=4, ahead=2))
    assert "2 jobs are ahead" in texts(JOB, hindered(ahead=2))
    assert "A worker takes it in a moment" in texts(JOB, hindered())


@pytest.mark.parametrize(
    ("message", "said"),
    [
        (Message(True, 4.0, 0, "", None), "It waits to be announced to the broker."),
        (Message(True, 90.0, 3, "no such queue", 8.0), "The broker does not take its message; it is sent again."),
        (Message(False, 12.0, 0, "", None), "Its message is with the broker."),
    ],
)
def test_a_queued_job_says_where_its_message_is(message, said):
    first = why(JOB, hindered(message=message))[0]
    assert first.text == said
    assert (first.since, first.left) == ((None, 8.0) if message.failures else (message.age, None))


def test_a_job_whose_message_waits_is_not_promised_for_the_next_moment():
    assert "in a moment" not in texts(JOB, hindered(message=Message(True, 1.0, 0, "", None)))
    assert "A worker takes it in a moment" in texts(JOB, hindered(message=Message(False, 1.0, 0, "", None)))
    refused = why(JOB, hindered(message=Message(True, 90.0, 3, "no such queue", 8.0)))[0]
    assert (refused.mark, refused.note, refused.left) == ("failure", "no such queue", 8.0)
    assert "message" not in texts(JOB, hindered(message=Message(False, None, 0, "", None)))


def test_a_job_whose_type_has_just_come_back_says_so():
    job = JOB | {"state": State.SCHEDULED, "waiting_for": "unknown_type", "gate": "report.generate"}
    assert "by itself as soon as a live worker of the queue has it" in texts(job, hindered(type_served=False))
    assert "One has it now: it goes back to its queue within a minute." in texts(job, hindered(ahead=None))


def test_a_job_of_an_unknown_type_says_since_when_and_when_it_is_given_up():
    job = JOB | {"state": State.SCHEDULED, "waiting_for": "unknown_type", "gate": "report.generate"}
    waits, missing, ends = why(job, hindered(ahead=None, type_served=False, grace=Grace(90.0, 3510.0)))
    assert (waits.text, waits.since) == ("No worker knows its type.", 90.0)
    assert missing.text == "No live worker of this queue has the type report.generate."
    assert (ends.text, ends.left) == ("It ends as failed in", 3510.0)
    assert ends.note == "Unless a worker of the queue reports has its type before."


def test_a_job_of_an_unknown_type_is_not_given_up_while_nobody_takes_jobs_of_its_queue():
    job = JOB | {"state": State.SCHEDULED, "waiting_for": "unknown_type", "gate": "report.generate"}
    pause = PauseRow("queue", "reports", "", None, NOW, 5.0, None, None)
    stays = "It does not end as failed while no worker takes jobs of its queue."
    assert stays in texts(job, hindered(ahead=None, type_served=False, queue_served=False))
    assert stays in texts(job, hindered(ahead=None, type_served=False, pauses=[pause]))
    assert "as failed" not in texts(job, hindered(ahead=None, type_served=False))  # nobody has looked at it yet
    assert "as failed" not in texts(JOB, hindered(type_served=False))


@pytest.mark.parametrize("scope", ["queue", "type", "tag", "key"])
def test_every_kind_of_pause_has_words(scope):
    pause = PauseRow(scope, "x", "", None, NOW, 5.0, NOW, 5.0)
    assert "x" in why(JOB, hindered(pauses=[pause]))[0].text


def test_a_job_that_does_not_wait_has_no_reasons():
    assert why(JOB | {"state": State.PROCESSING}, None) == []


def test_a_question_about_one_job_speaks_of_one():
    for words in bulkwords.TEXTS.values():
        assert words(1) != words(2)


def test_who_acted_is_never_the_engines_own_word():
    for word in wording.ACTORS:
        assert wording.actor_name(word) != word


def limited(waiting, gate, **facts):
    job = JOB | {"state": State.SCHEDULED, "waiting_for": str(waiting), "gate": "crm"}
    return why(job, hindered(ahead=None, gate=gate, since_for=90.0, **facts))[0]


HOLDER = Other(uuid4(), "boletos.gerar", "Processing", 48.0, "worker-01")


def test_a_job_behind_a_full_key_says_how_full_who_has_it_and_what_would_help():
    said = limited(Waiting.CONCURRENCY_KEY, Gate([HOLDER], taken=12, limit=12, before=2))
    assert said.note == "crm: 12 of 12 in use. 2 others go on before it."
    assert (said.since, list(said.others), said.more) == (90.0, [HOLDER], 11)
    assert said.help.startswith("It goes on by itself when one of these jobs ends")
    free = limited(Waiting.CONCURRENCY_KEY, Gate([HOLDER], taken=1, limit=2, before=1001))
    assert free.note == "There is room now: it goes on in a moment. More than 1,000 others go on before it."
    assert free.help == ""


def test_a_job_behind_its_types_limit_or_rate_says_so():
    said = limited(Waiting.TYPE_LIMIT, Gate([HOLDER], taken=1, limit=1, before=1))
    assert said.note == "Type crm: 1 of 1 in use. 1 other goes on before it."
    assert "higher limit of the type" in said.help
    said = limited(Waiting.TYPE_LIMIT, Gate([HOLDER], taken=1, limit=None))  # the limit was taken away
    assert "room now" in said.note
    spent = limited(Waiting.RATE, Gate(before=4, rate=RateUse("crm", 100, 60.0, 100, 12.5)))
    assert spent.text.endswith("The next one may start in")
    assert (spent.note, spent.left, spent.since) == ("100 may start within 1 min, and as many have.", 12.5, None)
    assert "room now" in limited(Waiting.RATE, Gate(rate=RateUse("crm", 100, 60.0, 7, None, 2, 92))).note
    promised = limited(Waiting.RATE, Gate(rate=RateUse("crm", 100, 60.0, 7, None, 2, 93)))
    assert "are kept for jobs that were let through before it" in promised.text
    assert promised.note == "They wait for a worker."
    assert "room now" in limited(Waiting.RATE, Gate()).note  # the rate was taken away


def test_a_job_behind_its_parents_says_how_many_have_not_ended():
    said = limited(Waiting.PARENTS, Gate([HOLDER], taken=3))
    assert (said.note, said.more) == ("3 of them have not ended.", 2)
    assert limited(Waiting.PARENTS, Gate([HOLDER], taken=1)).note == "1 of them has not ended."
    assert limited(Waiting.PARENTS, Gate()).note == "They have ended: it goes to its queue in a moment."


def test_a_job_parked_for_a_pause_says_what_is_paused_or_that_it_goes_on():
    pause = PauseRow("type", "report.generate", "", None, NOW, 5.0, None, None)
    job = JOB | {"state": State.SCHEDULED, "waiting_for": "pause", "gate": "type:report.generate"}
    first, second = why(job, hindered(ahead=None, pauses=[pause], since_for=4.0))
    assert (first.text, first.note, first.since) == ("What it belongs to is paused.", "", 4.0)
    assert second.help == "Somebody has to resume it."
    [alone] = why(job, hindered(ahead=None))
    assert alone.note == "It has been resumed: the job goes back to its queue in a moment."


def test_what_a_later_version_waits_for_is_shown_as_it_is():
    job = JOB | {"state": State.SCHEDULED, "waiting_for": "the_moon", "gate": None}
    assert why(job, hindered(ahead=None))[0].text == "the_moon"


def test_a_queued_job_whose_key_is_full_says_so_before_it_is_parked():
    said = why(JOB | {"concurrency_key": "crm"}, hindered(gate=Gate([HOLDER], taken=1, limit=1)))
    assert (said[0].text, said[0].note) == ("All places of its concurrency key are taken.", "crm: 1 of 1 in use.")
    assert [reason.kind for reason in said] == ["concurrency_key", "place"]
