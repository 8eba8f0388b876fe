"""Concurrency keys and limits of types in use: who holds them, who waits, however many keys there are."""

from uuid import uuid4

import pytest

from jobs.queries.depthhistory import ENDED, PARKED, STARTED, WAITING, depth_history
from jobs.queries.gates import BEFORE, HOLDERS, LIMIT, gate_of, rates
from jobs.queries.gates import PARENTS as PARENTS_SQL
from jobs.queries.keys import KEYS, LIMITED, ROWS, keys
from jobs.transitions.rates import Budget
from tests.database.explain import generate_jobs, indexes_used, plan_of, tables_scanned
from tests.transitions import rows
from tests.transitions.rows import ago

pytestmark = pytest.mark.django_db


def hold(value, slot=1, kind="key", age=48, state="Processing", **columns):
    if kind == "key":
        columns = {"concurrency_key": value, "concurrency_limit": 1} | columns
    made = rows.make_job(state, **columns)
    rows.execute("INSERT INTO turno.concurrency_keys (kind, value) VALUES (%s, %s) ON CONFLICT DO NOTHING", kind, value)
    rows.execute(
        "INSERT INTO turno.concurrency_slots (key_id, slot, job_id, dispatch_id, taken_at)"
        " SELECT id, %s, %s, %s, now() - %s * interval '1 second' FROM turno.concurrency_keys"
        " WHERE kind = %s AND value = %s",
        slot, made.id, made.token, age, kind, value,
    )  # fmt: skip
    return made


def park(value, waiting_for="concurrency_key", **columns):
    if waiting_for == "concurrency_key":
        columns = {"concurrency_key": value, "concurrency_limit": 1} | columns
    return rows.make_job("Scheduled", waiting_for=waiting_for, gate=value, **columns)


def test_a_house_without_keys_shows_none():
    rows.make_job()
    assert keys().rows == []
    assert keys().onward is None


def test_a_key_says_who_holds_it_how_much_and_how_many_wait():
    first = hold("cliente-42", 1, age=191, type="boletos.gerar", concurrency_limit=2)
    second = hold("cliente-42", 2, age=5, state="Enqueued", concurrency_limit=2)
    park("cliente-42", concurrency_limit=2)
    park("cliente-42", concurrency_limit=2)
    park("other")
    [row, other] = keys().rows
    assert (row.kind, row.value, row.taken, row.limit, row.waiting, row.at_least) == (
        "key",
        "cliente-42",
        2,
        2,
        2,
        False,
    )
    assert [holder.id for holder in row.holders] == [first.id, second.id]
    assert (row.holders[0].type, row.holders[0].state, row.holders[1].state) == (
        "boletos.gerar",
        "Processing",
        "Enqueued",
    )
    assert 191 <= row.since_for < 220
    assert (other.value, other.taken, other.holders, other.waiting, other.since_for) == ("other", 0, (), 1, None)


def test_a_key_that_nobody_uses_is_left_out_and_a_type_with_a_limit_is_not():
    rows.execute("INSERT INTO turno.concurrency_keys (kind, value) VALUES ('key', 'idle'), ('type', 'idle.type')")
    rows.execute("INSERT INTO turno.job_types (name, max_running) VALUES ('crm.sync', 3), ('free', NULL)")
    hold("crm.sync", kind="type", type="crm.sync")
    park("crm.sync", "type_limit", type="crm.sync")
    park("gone.type", "type_limit", type="gone.type")
    found = {row.value: (row.kind, row.taken, row.limit, row.waiting) for row in keys().rows}
    assert found == {"crm.sync": ("type", 1, 3, 1), "gone.type": ("type", 0, None, 1)}


def test_waiting_jobs_are_counted_up_to_a_bound_and_holders_named_up_to_a_few():
    rows.make_jobs(1005, "Scheduled", waiting_for="concurrency_key", gate="k", concurrency_key="k", concurrency_limit=9)
    for slot in range(1, 6):
        hold("k", slot, concurrency_limit=9)
    [row] = keys().rows
    assert (row.waiting, row.at_least, row.taken, len(row.holders), row.more) == (1000, True, 5, 3, 2)


def test_keys_are_paged_by_their_text_and_types_come_on_the_first_page_alone():
    rows.execute("INSERT INTO turno.job_types (name, max_running) VALUES ('a.type', 1)")
    for value in ("d", "b", "a", "e", "c"):
        (park if value in "ace" else hold)(value)
    first = keys(size=2)
    assert [row.value for row in first.rows] == ["a.type", "a", "b"]
    second = keys(first.onward, size=2)
    assert [row.value for row in second.rows] == ["c", "d"]
    third = keys(second.onward, size=2)
    assert ([row.value for row in third.rows], third.onward) == (["e"], None)


def test_ten_thousand_keys_are_read_by_indexes_a_page_at_a_time():
    generate_jobs()
    rows.execute(
        "UPDATE turno.jobs SET concurrency_key = gate, concurrency_limit = 1 WHERE waiting_for = 'concurrency_key'"
    )
    rows.execute(
        "INSERT INTO turno.concurrency_keys (kind, value) SELECT 'key', 'k' || n FROM generate_series(1, 9999) n"
    )
    rows.execute("ANALYZE turno.jobs, turno.concurrency_keys")
    names = {"kinds": ["key"] * 50, "values": [f"key-{n}" for n in range(50)], "holders": 3, "most": 1001}
    for sql, params in (
        (KEYS, {"after": "key-1", "limit": 51}), (LIMITED, {"after": "", "limit": 200}), (ROWS, names),
        (HOLDERS, {"kind": "key", "value": "k7", "shown": 10}), (LIMIT, {"type": "t"}),
        (PARENTS_SQL, {"id": uuid4(), "shown": 10}),
        (BEFORE, {"waiting_for": "concurrency_key", "gate": "key-1", "priority": 0, "created_at": "2026-01-01T00:00Z",
                  "id": uuid4(), "most": 1001}),
    ):  # fmt: skip
        assert not tables_scanned(plan_of(sql, params)) & {"jobs", "concurrency_keys"}, sql
    assert "jobs_gate_order" in indexes_used(plan_of(KEYS, {"after": "key-1", "limit": 51}))


def test_the_depth_of_the_last_hour_reads_no_jobs_from_end_to_end():
    generate_jobs()
    params = {"most": 101, "queues": 500, "running": 1000, "minutes": 60}
    for sql in (WAITING, PARKED, STARTED, ENDED):
        assert "jobs" not in tables_scanned(plan_of(sql, params)), sql


def test_a_parked_job_finds_who_is_before_it_and_who_holds_the_key():
    holder = hold("k")
    park("k", created_at=ago(60))
    park("k", created_at=ago(10), priority=5)
    park("k", created_at=ago(5))
    made = park("k", created_at=ago(30))
    gate = gate_of(rows.job(made.id) | {"id": made.id})
    assert [other.id for other in gate.others] == [holder.id]
    assert (gate.taken, gate.limit, gate.before, gate.more) == (1, 1, 2, 0)


def test_a_queued_job_finds_its_key_full_of_others_but_not_of_itself():
    queued = rows.make_job(concurrency_key="k", concurrency_limit=1)
    assert gate_of(rows.job(queued.id) | {"id": queued.id}) is None
    kept = hold("k", state="Enqueued")
    assert gate_of(rows.job(queued.id) | {"id": queued.id}).taken == 1
    assert gate_of(rows.job(kept.id) | {"id": kept.id}) is None
    assert gate_of(rows.job(rows.make_job().id)) is None


def test_a_child_finds_the_parents_that_have_not_ended():
    running, ended = rows.make_job("Processing"), rows.make_job("Succeeded")
    child = rows.make_job("Scheduled", waiting_for="parents")
    for parent in (running, ended):
        rows.execute("INSERT INTO turno.job_dependencies (child_id, parent_id) VALUES (%s, %s)", child.id, parent.id)
    gate = gate_of(rows.job(child.id) | {"id": child.id})
    assert [other.id for other in gate.others] == [running.id]
    assert gate.taken == 1


def test_a_rate_says_what_is_spent_as_those_who_start_jobs_count_it():
    window, allowed = 60.0, 4
    now = rows.select("SELECT extract(epoch FROM now())::float8 AS now")[0]["now"]
    part = int(now // (window / 50))
    spent = [[part - 51, 100], [part - 50, 1], [part - 20, 2], [part, 1]]
    rows.execute(
        'INSERT INTO turno.rates (type, allowed, "window", spent)'
        " VALUES ('crm', %s, %s, %s::jsonb), ('b', 1, 1, '5')",
        allowed, window, str(spent),
    )  # fmt: skip
    budget = Budget(allowed, window, spent, now)
    [use] = rates(["crm", "none"])
    assert (use.spent, use.allowed - use.spent) == (4, budget.left)
    assert use.opens_in == pytest.approx(budget.wait, abs=0.01)
    rows.execute("UPDATE turno.rates SET allowed = 5")
    assert (rates(["crm"])[0].opens_in, rates(["crm"])[0].promised) == (None, False)
    woken = rows.make_job(type="crm")
    rows.execute("UPDATE turno.jobs SET admitted = dispatch_id WHERE id = %s", woken.id)
    assert (rates(["crm"])[0].woken, rates(["crm"])[0].promised) == (1, True)
    assert [use.type for use in rates()] == ["b", "crm"]


@pytest.mark.parametrize("spent", ["5", "{}", '[7, "x", [], ["a", 1], [1, "b"], [null, 3], [99999999999, 2]]'])
def test_what_a_person_wrote_into_a_rate_breaks_no_read(spent):
    rows.execute("INSERT INTO turno.rates (type, allowed, \"window\", spent) VALUES ('b', 9, 1, %s::jsonb)", spent)
    assert rates(["b"])[0].spent == (2 if "9999" in spent else 0)


def test_the_line_of_the_last_hour_ends_in_the_depth_of_now():
    assert depth_history({"empty": 0}) == {"empty": [0.0] * 60}
    rows.make_jobs(3, queue="grows", enqueued_at=ago(10 * 60 + 5))
    rows.make_jobs(2, queue="grows", enqueued_at=ago(5))
    rows.make_job("Scheduled", queue="grows", waiting_for="concurrency_key", gate="k", enqueued_at=ago(2 * 60 + 5))
    line = depth_history({"grows": 6})["grows"]
    assert line[-1] == 6
    assert line[:49] == [0.0] * 49
    assert line[-11:-3] == [3.0] * 8
    assert line[-3:-1] == [4.0, 4.0]


def test_what_ran_and_what_ended_was_in_the_queue_before():
    rows.make_job("Processing", queue="q", enqueued_at=ago(20 * 60 + 5), claimed_at=ago(10 * 60 + 5))
    rows.execute(
        "INSERT INTO turno.metrics_minute (minute, queue, type, succeeded, wait_sum, duration_sum, durations)"
        " VALUES (date_trunc('minute', now()) - interval '30 minutes', 'q', 't', 4, 4 * 300, 4 * 60, '{}')"
    )
    line = depth_history({"q": 0})["q"]
    assert line[-1] == 0
    assert sum(line) == pytest.approx(10 * 1 + 4 * 5, abs=8)
    assert max(line) == 4
    assert line[59 - 15] == 1


def test_a_depth_beyond_the_bound_is_scaled_to_what_is_counted(monkeypatch):
    monkeypatch.setattr("jobs.queries.depthhistory.COUNTED", 9)
    rows.make_jobs(40, queue="deep", enqueued_at=ago(600))
    line = depth_history({"deep": 40})["deep"]
    assert line[-1] == line[-5] == 40
