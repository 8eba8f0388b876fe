"""Why a job waits, as the API says it: for everything that a job may wait for, in words, and never an error."""

import pytest

from jobs import queries, reasons
from jobs.conf import overridden
from jobs.queries import waiting
from jobs.states import PARKED, State, Waiting
from tests.transitions import rows
from tests.transitions.rows import ago, ahead

pytestmark = pytest.mark.django_db
KEYED = {"concurrency_key": "crm", "concurrency_limit": 1}


def why(api, made, language="en"):
    return api.get(f"/api/jobs/{made.id}", Accept_Language=language).json["waiting"]


def served(queue="default", types=("test.echo",), slots=4):
    return rows.make_worker(queues={queue: slots}, types=list(types))


@pytest.mark.parametrize("waiting_for", Waiting)
@pytest.mark.parametrize("gate", [None, "x", "test.echo"])
def test_whatever_it_waits_for_it_says_so(api, waiting_for, gate):
    parked = waiting_for in PARKED
    made = rows.make_job("Scheduled", waiting_for=str(waiting_for), gate=gate if parked else None)
    first = why(api, made)[0]
    assert first["kind"] == waiting_for
    assert first["text"]
    if not parked:
        assert 3500 < first["ends_in"] <= 3600


@pytest.mark.parametrize("state", sorted(set(State) - {State.ENQUEUED, State.SCHEDULED}))
def test_a_job_that_does_not_wait_says_nothing(api, state):
    assert why(api, rows.make_job(state)) == []


def test_it_names_who_holds_the_key_with_their_states_since_when_and_what_would_help(api):
    served()
    holder = rows.make_job("Processing", type="boletos.gerar", **KEYED)
    rows.execute("INSERT INTO turno.concurrency_keys (kind, value) VALUES ('key', 'crm')")
    rows.execute(
        "INSERT INTO turno.concurrency_slots (key_id, slot, job_id, dispatch_id, taken_at)"
        " SELECT id, 1, %s, %s, now() - interval '48 seconds' FROM turno.concurrency_keys", holder.id, holder.token,
    )  # fmt: skip
    rows.make_job("Scheduled", waiting_for="concurrency_key", gate="crm", created_at=ago(99), **KEYED)
    made = rows.make_job("Scheduled", waiting_for="concurrency_key", gate="crm", **KEYED)
    rows.execute(
        "INSERT INTO turno.job_state_changes (job_id, from_state, to_state, reason, at)"
        " VALUES (%s, 'Enqueued', 'Scheduled', 'parked', now() - interval '30 seconds')", made.id,
    )  # fmt: skip
    [reason] = why(api, made)
    assert reason["note"] == "crm: 1 of 1 in use. 1 other goes on before it."
    assert reason["help"].startswith("It goes on by itself when one of these jobs ends")
    assert 30 <= reason["since_for"] < 60
    [other] = reason["jobs"]
    assert (other["id"], other["type"], other["state"], other["worker"]) == (
        str(holder.id), "boletos.gerar", "Processing", "worker-1",
    )  # fmt: skip
    assert 48 <= other["since_for"] < 80
    assert reason["more_jobs"] == 0


def test_it_names_the_parents_that_have_not_ended(api):
    served()
    child = rows.make_job("Scheduled", waiting_for="parents")
    parent = rows.make_job("Scheduled", waiting_for="retry")
    rows.execute("INSERT INTO turno.job_dependencies (child_id, parent_id) VALUES (%s, %s)", child.id, parent.id)
    [reason] = why(api, child)
    assert [(other["id"], other["state"]) for other in reason["jobs"]] == [(str(parent.id), "Scheduled")]
    assert reason["note"] == "1 of them has not ended."


def test_a_queued_job_says_that_nobody_serves_it_or_that_all_slots_are_busy_and_who_is_before_it(api):
    made = rows.make_job(enqueued_at=ago(5))
    first, place = why(api, made)
    assert (first["kind"], first["command"]) == ("queue_unserved", "python manage.py runworker --queues default:4")
    assert place["text"] == "It is the next one of its queue."
    worker = served(slots=1)
    running = rows.make_job("Processing", worker=worker)
    rows.make_job(enqueued_at=ago(50))
    [place] = why(api, made)
    assert (place["kind"], place["text"]) == ("place", "1 job is ahead of it in the queue.")
    assert place["note"] == "The only slot that live workers have for this queue is busy."
    assert place["help"] == "Another worker, or more slots for this queue, would let it run sooner."
    assert [(other["id"], other["state"]) for other in place["jobs"]] == [(str(running.id), "Processing")]


def test_a_pause_is_found_however_many_others_there_are_and_says_who_why_and_until_when(api):
    served()
    rows.execute("INSERT INTO turno.pauses (scope, value) SELECT 'key', 'k' || n FROM generate_series(1, 600) AS n")
    rows.execute(
        "INSERT INTO turno.pauses (scope, value, reason, paused_by, until)"
        " VALUES ('queue', 'default', 'the printer', 'user:ana', now() + interval '1 hour')"
    )
    paused, _place = why(api, rows.make_job())
    assert paused["kind"] == "pause"
    assert "Queue default has been paused" in paused["text"]
    assert paused["note"].startswith("the printer · By ana. · Until ")
    assert paused["help"] == "It goes on by itself then; resuming lets it go on now."


def test_words_are_in_the_language_that_is_asked_for(api):
    made = rows.make_job()
    assert why(api, made)[0]["text"].startswith("No live worker serves")
    assert why(api, made, "pt-BR")[0]["text"].startswith("Nenhum worker")


@pytest.mark.parametrize("waiting_for", [None, *Waiting])
def test_a_job_that_is_deleted_between_two_looks_breaks_nothing(api, waiting_for, monkeypatch):
    """The row is read, and gone when its message, its gate and its history are asked for."""
    made = rows.make_job() if waiting_for is None else rows.make_job(
        "Scheduled", waiting_for=str(waiting_for), gate="x" if waiting_for in PARKED else None, **KEYED
    )  # fmt: skip
    job = queries.detail(made.id).job
    rows.execute("DELETE FROM turno.jobs WHERE id = %s", made.id)
    with overridden(messaging={"transport": "rabbitmq", "urls": ("amqp://127.0.0.1/",)}):
        assert reasons.explained(job)
    assert waiting.hindrances(job) is None or waiting.hindrances(job).message is None


def test_a_job_whose_instant_has_come_is_due_now(api):
    made = rows.make_job("Scheduled", run_at=ahead(-5))
    assert why(api, made)[0]["ends_in"] == 0
