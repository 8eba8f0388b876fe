"""Each invariant: in a healthy house it finds nothing; of a row that was spoiled past Turno it names just that one."""

import pytest
from django.db import connection

from jobs import invariants
from jobs.conf import overridden
from jobs.invariants import INVARIANTS, guards
from tests.invariants.house import BROKEN, LIMITED, RATED
from tests.transitions.rows import execute

BROKER = {"transport": "rabbitmq", "urls": ("amqp://127.0.0.1:5672/",)}


def found(**options):
    """What is broken, by name, looked at both ways: of the living house, and of everything."""
    looks = [
        {finding.name: finding for finding in invariants.check(margin=0, attended=True, whole=whole)}
        for whole in (False, True)
    ]
    assert [(f.name, f.count) for f in looks[0].values()] == [(f.name, f.count) for f in looks[1].values()]
    return looks[0]


def drop(table, *names):
    """Take constraints or indexes away, until the test's transaction is rolled back."""
    for name in names:
        execute(f"ALTER TABLE turno.{table} DROP CONSTRAINT IF EXISTS {name}")
        execute(f"DROP INDEX IF EXISTS turno.{name}")


def spoil(house, statement, job):
    with connection.cursor() as cursor:
        cursor.execute(statement, {**house, "id": house.get(job)})


# Of each: the constraints that forbid it, the statement that does it, and the job (or whatever else) that is named.
JOB = "UPDATE turno.jobs SET {} WHERE id = %(id)s"
# A letter for the job that failed, so that it is not the next thing to be broken.
AGAIN = (
    "INSERT INTO turno.dead_letters (id, job_id, type, queue, failure_kind, fingerprint, attempts)"
    " VALUES (gen_random_uuid(), %(failed)s, 'a.type', 'default', 'error', 'f', 1)"
)
SPOILED = {
    "has_a_way_on": (["jobs_token_when_dispatched"], JOB.format("dispatch_id = NULL"), "waiting"),
    "has_an_owner": (["jobs_owned_when_processing"], JOB.format("worker_id = NULL"), "rated"),
    "due_is_enqueued": ([], JOB.format("run_at = now() - interval '1 second'"), "due"),
    "loss_is_recovered": ([], JOB.format("lease_expires_at = now() - interval '1 hour'"), "rated"),
    "key_is_full": ([], JOB.format("concurrency_limit = 2"), "behind"),
    "type_is_full": ([], f"UPDATE turno.job_types SET max_running = 2 WHERE name = '{LIMITED}'", "over"),
    "rate_is_spent": ([], f"UPDATE turno.rates SET allowed = 2 WHERE type = '{RATED}'", "late"),
    "pause_holds": ([], "DELETE FROM turno.pauses", "paused"),
    "breaker_is_open": ([], "DELETE FROM turno.circuits", "broken"),
    "type_is_unknown": ([], "UPDATE turno.workers SET types = types || ARRAY['strange.type']", "strange"),
    "parents_run": ([], "UPDATE turno.job_dependencies SET parent_id = %(again)s, policy = 'run'", "child"),
    "child_falls_with_parent": (
        [],
        "INSERT INTO turno.job_dependencies (child_id, parent_id, policy) VALUES (%(child)s, %(failed)s, 'cancel')",
        "child",
    ),
    "executions_are_told": ([], "DELETE FROM turno.job_attempts WHERE job_id = %(id)s AND ordinal = 1", "again"),
    "token_is_used_once": (
        ["attempts_one_dispatch"],
        "UPDATE turno.job_attempts SET dispatch_id = (SELECT dispatch_id FROM turno.jobs WHERE id = %(id)s)"
        " WHERE job_id = %(done)s",
        "rated",
    ),
    "attempts_take_turns": (
        [],
        "UPDATE turno.job_attempts SET ended_at = ended_at + interval '1 hour' WHERE job_id = %(id)s AND ordinal = 1",
        "again",
    ),
    "fired_once": (
        ["jobs_one_fired_instant"],
        "UPDATE turno.jobs AS j SET recurring_job_id = f.recurring_job_id, fired_for = f.fired_for"
        " FROM turno.jobs AS f WHERE f.id = %(fired)s AND j.id = %(id)s",
        "done",
    ),
    "slot_has_a_holder": (
        [],
        "INSERT INTO turno.concurrency_slots (key_id, slot, job_id, dispatch_id)"
        " SELECT id, 2, %(id)s, gen_random_uuid() FROM turno.concurrency_keys WHERE kind = 'type'",
        "waiting",
    ),
    "running_holds_its_key": ([], "DELETE FROM turno.concurrency_slots WHERE job_id = %(id)s", "running"),
    "running_counts_for_its_type": ([], "DELETE FROM turno.concurrency_slots WHERE job_id = %(id)s", "limited"),
    "changes_are_legal": (
        ["changes_legal_edge"],
        "UPDATE turno.job_state_changes SET from_state = 'Succeeded' WHERE job_id = %(id)s AND from_state IS NOT NULL",
        "done",
    ),
    "history_is_whole": (
        [],
        "DELETE FROM turno.job_state_changes WHERE job_id = %(id)s AND from_state IS NULL",
        "done",
    ),
    "ended_when_final": (["jobs_finished_when_final"], JOB.format("finished_at = now()"), "waiting"),
    "failed_is_an_error": ([], "DELETE FROM turno.dead_letters WHERE job_id = %(id)s", "failed"),
    "error_has_failed": ([], "UPDATE turno.dead_letters SET job_id = %(waiting)s; " + AGAIN, "waiting"),
    "successes_are_counted": ([], "UPDATE turno.metrics_minute SET succeeded = succeeded - 1", "default a.type"),
    "probe_ends": (
        [],
        "UPDATE turno.circuits SET state = 'half_open', probe_job_id = gen_random_uuid(),"
        " probe_deadline = now() - interval '1 second'",
        BROKEN,
    ),
    "schedule_fires": (
        [],
        "INSERT INTO turno.recurring_jobs (id, name, type, payload, cron, next_run_at)"
        " VALUES (gen_random_uuid(), 'nightly', 'a.type', '{}', '* * * * *', now() - interval '1 second')",
        "nightly",
    ),
    "messages_leave": (
        [],
        "INSERT INTO turno.outbox_messages (id, job_id, dispatch_id, queue, created_at)"
        " VALUES (77, %(waiting)s, gen_random_uuid(), 'default', now() - interval '1 second')",
        "77",
    ),
    "key_is_not_crowded": (
        [],
        "INSERT INTO turno.concurrency_slots (key_id, slot, job_id, dispatch_id)"
        " SELECT k.id, 2, j.id, j.dispatch_id FROM turno.concurrency_keys AS k, turno.jobs AS j"
        " WHERE k.kind = 'key' AND j.id = %(waiting)s;"
        " UPDATE turno.jobs SET concurrency_key = 'k', concurrency_limit = 1 WHERE id = %(waiting)s",
        "k",
    ),
    "guards_stand": ([], "ALTER TABLE turno.jobs DROP CONSTRAINT jobs_state_known", "jobs_state_known"),
}
TABLE = {"attempts_one_dispatch": "job_attempts", "changes_legal_edge": "job_state_changes"}
# What is broken besides, since one thing follows from the other.
BESIDES = {
    "running_holds_its_key": {"key_is_full"},
    "running_counts_for_its_type": {"type_is_full"},
    "changes_are_legal": {"history_is_whole"},
    "fired_once": set(),
}


def test_a_healthy_house_breaks_nothing(house):
    assert found() == {}


def test_there_is_a_spoiled_row_for_each_invariant():
    assert SPOILED.keys() == {one.name for one in INVARIANTS}


@pytest.mark.parametrize("name", sorted(SPOILED))
def test_what_is_spoiled_is_found_and_nothing_else(house, name):
    constraints, statement, job = SPOILED[name]
    for constraint in constraints:
        drop(TABLE.get(constraint, "jobs"), constraint)
    spoil(house, statement, job)

    with overridden(messaging=BROKER if name == "messages_leave" else {}):
        broken = found()

    dropped = ["guards_stand"] if constraints else []
    assert broken.keys() == {name, *BESIDES.get(name, ()), *dropped}
    assert str(house.get(job, job)) in broken[name].examples
    assert broken[name].count == (2 if name == "fired_once" else 1)
    assert [broken[guard].examples for guard in dropped] == [tuple(constraints) for _ in dropped]


def test_every_constraint_of_the_models_is_a_guard_that_the_database_has(house):
    assert {"jobs_one_fired_instant", "attempts_one_dispatch", "changes_legal_edge"} <= set(guards())
    assert "guards_stand" not in found()


@pytest.mark.parametrize("name", [one.name for one in INVARIANTS])
def test_each_says_what_holds_and_what_to_do_in_a_sentence(name):
    one = next(one for one in INVARIANTS if one.name == name)
    assert one.says.endswith(".")
    assert one.advice.endswith(".")
    assert one.says != one.advice
