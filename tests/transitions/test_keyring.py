"""Keys that nobody needs leave in small batches; those that somebody holds or waits for stay."""

import pytest

from jobs import transitions
from jobs.ids import new_id
from jobs.ratelimit import Limits
from tests.transitions.flow import TYPE, K, end, enqueue, keyed, search
from tests.transitions.rows import execute, make_job, select

pytestmark = pytest.mark.django_db
HOUR = 3600.0


def forget(limit=100, age=HOUR):
    execute("UPDATE turno.concurrency_keys SET created_at = now() - interval '2 hours' WHERE value <> 'new'")
    return transitions.forget_keys(age=age, limit=limit)


def known():
    return sorted(row["value"] for row in select("SELECT value FROM turno.concurrency_keys"))


def test_a_key_whose_jobs_have_ended_is_forgotten_and_comes_again_with_the_next_one():
    keyed(2)
    while found := search(1):
        assert forget() == 0
        end(*found)
    assert (forget(), known()) == (1, [])
    keyed(1)
    assert len(search(1)) == 1
    assert known() == ["k"]


@pytest.mark.parametrize(
    "how", [{"state": "Enqueued"}, {"state": "Scheduled", "waiting_for": "concurrency_key", "gate": "k"}]
)
def test_a_key_at_which_somebody_waits_stays_and_so_does_one_for_which_somebody_is_about_to_come(how):
    execute("INSERT INTO turno.concurrency_keys (kind, value) VALUES ('key', 'k'), ('key', 'other'), ('type', 'k')")
    make_job(**K, **how)
    assert (forget(), known()) == (2, ["k"])


def test_a_type_with_a_limit_keeps_its_row_and_one_without_does_not():
    transitions.set_limits(TYPE, Limits(max_running=1), actor="ana")
    enqueue(new_id())
    end(*search(1))
    assert forget() == 0
    transitions.set_limits(TYPE, Limits(), actor="ana")
    assert (forget(), known()) == (1, [])


def test_only_so_many_leave_at_once_and_none_that_is_new():
    execute("INSERT INTO turno.concurrency_keys (kind, value) SELECT 'key', n::text FROM generate_series(1, 7) AS n")
    execute("INSERT INTO turno.concurrency_keys (kind, value) VALUES ('key', 'new')")
    assert [forget(limit=5), forget(limit=5), forget(limit=5)] == [5, 2, 0]
    assert known() == ["new"]


def test_where_very_many_are_in_use_a_call_looks_at_some_and_in_time_at_all():
    make_job(concurrency_key="k0", concurrency_limit=1)
    execute("INSERT INTO turno.concurrency_keys (kind, value) SELECT 'key', 'k' || n FROM generate_series(0, 40) AS n")
    execute(
        "INSERT INTO turno.concurrency_slots (key_id, slot, job_id, dispatch_id) "
        "SELECT k.id, 1, j.id, gen_random_uuid() FROM turno.concurrency_keys AS k, turno.jobs AS j "
        "WHERE k.value <> 'k40'"
    )
    assert sum(forget(limit=1) for _ in range(500)) == 1
    assert "k40" not in known()
