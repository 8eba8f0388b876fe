"""The board: who is on it and in which order, what runs where, and what capacity means."""

import sys
from uuid import uuid4

import pytest

from jobs.queries import Board, board
from tests.queries.house import pause, running, worker
from tests.transitions import rows

pytestmark = pytest.mark.django_db


def names(found: Board) -> list[tuple[str, str]]:
    return [(w.name, w.state) for w in found.workers]


def test_a_house_without_workers_has_an_empty_board():
    found = board()
    assert (found.workers, found.strays, found.pauses, found.truncated) == ([], [], [], False)
    assert (found.busy, found.capacity, found.use()) == (0, 0, {})


def test_those_that_need_a_person_come_first_then_by_name():
    worker("b")
    worker("a")
    worker("d", state="Draining")
    worker("z-silent", seen=20)
    owner = worker("c-gone", seen=100)
    running(owner)
    worker("gone without jobs", seen=100)
    worker("left", state="Offline")
    found = board()
    expected = [("c-gone", "Offline"), ("z-silent", "Silent"), ("d", "Draining"), ("a", "Online"), ("b", "Online")]
    assert names(found) == expected
    assert [found.count(state) for state in ("Online", "Draining", "Silent", "Offline")] == [2, 1, 1, 1]
    assert [w.name for w in found.lost] == ["c-gone", "z-silent"]


def test_a_worker_that_left_is_on_the_board_while_it_owns_a_job():
    owner = worker("left", state="Offline", seen=5, queues={"default": 3})
    running(owner)
    (left,) = board().workers
    assert (left.state, left.busy, left.capacity, left.slots) == ("Offline", 1, 1, 3)


def test_two_workers_of_one_name_are_two_the_older_one_last():
    first, second = worker("twin", started=100), worker("twin", started=10)
    running(first)
    found = board().workers
    assert [w.id for w in found] == [second, first]
    assert [w.busy for w in found] == [0, 1]


def test_capacity_is_the_slots_of_online_workers_and_the_busy_ones_of_all_others():
    online, draining, silent = worker("a", {"x": 4}), worker("b", {"x": 4}, state="Draining"), worker("c", seen=30)
    for owner, jobs in ((online, 1), (draining, 2), (silent, 3)):
        for slot in range(1, jobs + 1):
            running(owner, slot, queue="x")
    running(uuid4(), queue="x")
    found = board()
    assert (found.busy, found.capacity) == (7, 4 + 2 + 3 + 1)
    use = found.use()["x"]
    assert (use.busy, use.capacity, use.free, use.workers) == (7, 10, 3, 2)


def test_a_paused_queue_keeps_its_slots_and_takes_no_work():
    worker("a", {"x": 2, "y": 1})
    pause("queue", "x", reason="late", paused_by="ana")
    pause("queue", "elsewhere")
    pause("type", "y")
    found = board()
    (only,) = found.workers
    assert only.paused == {"x"}
    assert (found.capacity, found.use()["x"].free, found.use()["y"].free) == (3, 0, 1)
    assert [seat.accepts for seat in only.seats()["x"]] == [False, False]


def test_a_job_whose_worker_has_no_row_is_a_stray_and_returns_when_its_lease_ends():
    running(uuid4(), lease_expires_at=rows.ahead(20), queue="orphans")
    found = board()
    (stray,) = found.strays
    assert stray.worker == "worker-1"
    assert 30 < stray.returns_in <= 35  # the lease and recovery's grace
    assert (found.busy, found.capacity, found.use()["orphans"].busy) == (1, 1, 1)


def test_jobs_of_a_lost_worker_say_when_they_return_and_those_of_a_live_one_do_not():
    silent, online = worker("silent", seen=20), worker("online")
    running(silent, 1, lease_expires_at=rows.ahead(40))
    running(silent, 2, lease_expires_at=rows.ago(100))
    running(online, 1, lease_expires_at=rows.ahead(40))
    lost, live = board().workers
    assert sorted(round(job.returns_in) for job in lost.running) == [0, 55]
    assert (lost.returns_in, live.returns_in, live.running[0].returns_in) == (0, None, None)


def test_a_running_job_says_how_far_and_how_long_it_is():
    owner = worker("a")
    id_ = running(
        owner, 2, started_at=rows.ago(90), progress=40, stage="Página 12 de 40", attempts_used=1, max_attempts=3,
        lost_count=1, cancel_requested_at=rows.ago(1), type="report.generate",
    )  # fmt: skip
    (job,) = board({"report.generate": 60.0}).workers[0].running
    assert (job.id, job.type, job.queue, job.slot) == (id_, "report.generate", "default", 2)
    assert job.stage == "Página 12 de 40"
    assert (job.progress, job.has_progress, job.attempt, job.lost_count, job.cancelling) == (40, True, 2, 1, True)
    assert 89 < job.elapsed < 100
    assert job.slow


def test_a_job_is_slow_above_the_usual_of_its_type_only():
    owner = worker("a")
    running(owner, 1, started_at=rows.ago(90), type="known.slow")
    running(owner, 2, started_at=rows.ago(30), type="known.fast")
    running(owner, 3, started_at=rows.ago(9000), type="unknown")
    found = {job.type: job.slow for job in board({"known.slow": 60.0, "known.fast": 60.0}).workers[0].running}
    assert found == {"known.slow": True, "known.fast": False, "unknown": False}


def test_a_job_claimed_and_not_started_counts_from_its_claim():
    owner = worker("a")
    running(owner, started_at=None, claimed_at=rows.ago(7))
    (job,) = board().workers[0].running
    assert 7 <= job.elapsed < 20
    assert (job.started, job.has_progress) == (False, False)


def test_the_longest_job_comes_first():
    owner = worker("a")
    running(owner, 1, started_at=rows.ago(10))
    longest = running(owner, 2, started_at=rows.ago(500))
    (found,) = board().workers
    assert found.longest.id == longest
    assert [job.slot for job in found.running] == [2, 1]


def test_no_job_is_lost_from_sight_whatever_its_slot_says():
    owner = worker("a", {"default": 2})
    in_place = running(owner, 1, started_at=rows.ago(99))
    for slot in (1, 7, None):
        running(owner, slot)
    running(owner, 1, queue="not-served")
    found = board()
    seats = found.workers[0].seats()
    assert [seat.number for seat in seats["default"]] == [1, 2, 3, 4, 5]
    assert [seat.job is not None for seat in seats["default"]] == [True, False, True, True, True]
    assert seats["default"][0].job.id == in_place
    assert [seat.accepts for seat in seats["default"]] == [True, True, False, False, False]
    assert len(seats["not-served"]) == 1
    assert (found.busy, found.capacity) == (5, 6)
    assert found.use()["not-served"].workers == 0


def test_the_sums_are_those_of_the_seats():
    for n, state in enumerate(("Online", "Draining", "Online")):
        owner = worker(f"w-{n}", {"x": 3, "y": 1, "z": 0}, state=state, seen=20 if n == 2 else 1)
        for slot, queue in ((1, "x"), (1, "x"), (9, "x"), (1, "z"), (None, "elsewhere")):
            running(owner, slot, queue=queue)
    pause("queue", "y")
    for found in board().workers:
        seats, use = found.seats(), found.use()
        assert list(seats) == list(use) == ["elsewhere", "x", "y", "z"]
        for queue, them in seats.items():
            busy = sum(seat.job is not None for seat in them)
            free = sum(seat.job is None and seat.accepts for seat in them)
            capacity = len(them) if found.state == "Online" else busy
            assert (use[queue].busy, use[queue].capacity, use[queue].free) == (busy, capacity, free)


@pytest.mark.parametrize("queues", [{}, {"default": 0}, [], "x", {"default": "4"}, {"default": -3}, {"default": None}])
def test_a_worker_of_no_slots_is_on_the_board_without_any(queues):
    worker("idle", queues)
    found = board()
    assert names(found) == [("idle", "Online")]
    assert (found.capacity, found.workers[0].slots) == (0, 0)


def test_more_slots_than_the_configuration_allows_are_not_believed():
    worker("huge", {"default": 10**12})
    assert board().capacity == 1000


def test_hostile_words_come_through_as_they_are():
    name = "<script>alert(1)</script>'; DROP TABLE jobs; -- \u202e \\ %s %(x)s \U0001f600"
    running(worker(name), stage=name)
    (found,) = board().workers
    assert found.name == name
    assert found.running[0].stage == name


def test_huge_numbers_are_no_trouble():
    owner = worker("old", seen=1e9, started=3e9)
    running(owner, slot=32_767, executions=2**31 - 1, started_at=rows.Sql("'0001-01-01'::timestamptz"))
    (found,) = board().workers
    assert found.started_ago >= 3e9
    assert found.running[0].elapsed > 6e10


def test_a_worker_whose_clock_is_ahead_was_seen_now():
    worker("early", seen=-50, started=-50)
    (found,) = board().workers
    assert (found.seen_ago, found.started_ago, found.state) == (0, 0, "Online")


def test_the_board_is_read_in_a_handful_of_statements_that_lock_nothing(django_assert_num_queries):
    for n in range(5):
        running(worker(f"w-{n}"))
    with django_assert_num_queries(5) as seen:
        board()
    assert not [query for query in seen.captured_queries if "FOR " in query["sql"] and "UPDATE" in query["sql"]]


def test_a_board_that_is_cut_off_says_so(monkeypatch):
    monkeypatch.setattr(sys.modules["jobs.queries.board"], "RUNNING_SHOWN", 2)
    owner = worker("a")
    for slot in range(3):
        running(owner, slot)
    assert board().truncated
    assert board().busy == 2
