"""What a worker does about a neighbour: only who is proven dead is taken back, and then at once."""

import os

import pytest

from jobs import leadership, presence
from jobs.conf import overridden
from jobs.ids import new_id
from jobs.models import Worker
from jobs.states import State
from tests.database.explain import indexes_used, plan_of, tables_scanned
from tests.kit.processes import eventually
from tests.neighbours.stand_ins import register
from tests.transitions import COMMITTED, rows
from tests.transitions.rows import ago, execute, make_job
from workers import identity, neighbours, tree
from workers.neighbours import Neighbours, sweep_run_files
from workers.routines import services

pytestmark = [COMMITTED, pytest.mark.usefixtures("committed"), pytest.mark.crash]


def running(standing, **columns):
    return make_job(State.PROCESSING, worker=standing.worker_id, **columns)


def take_back_neighbours():
    return Neighbours().take_back()


def row(standing):
    return Worker.objects.get(pk=standing.worker_id)


def test_what_a_dead_neighbour_held_is_taken_back_at_once_its_row_offline(processes, caplog):
    standing = processes.worker()
    register(standing)
    leadership.lead(leadership.HOUSEKEEPING, standing.worker_id, lease=60)
    jobs = [running(standing) for _ in range(3)]
    others = make_job(State.PROCESSING)
    assert take_back_neighbours() == 0
    standing.kill()
    with overridden(worker={"run_dir": str(processes.run_dir)}, recovery={"batch_size": 2}):
        assert take_back_neighbours() == 3
    for job in jobs:
        assert rows.edges(job.id) == [("Processing", "Enqueued", "taken_back")]
    assert rows.state(others.id) == State.PROCESSING
    assert (row(standing).state, row(standing).settled_at is None) == ("Offline", False)
    [said] = [record for record in caplog.records if record.message == "worker.taken_back"]
    assert said.jobs == sorted(str(job.id) for job in jobs)
    assert leadership.lead(leadership.HOUSEKEEPING, new_id(), lease=1)
    assert take_back_neighbours() == 0


def test_a_zombie_is_dead_when_its_lock_is_free_and_not_before(processes):
    standing = processes.worker("if fork(): os.setsid(); stop()")
    register(standing)
    job = running(standing)
    child = eventually(lambda: [pid for pid in processes.left_by(standing) if pid != standing.pid], "it has a child")
    standing.kill(reap=False)
    assert take_back_neighbours() == 1
    assert not tree.alive(child[0])
    assert rows.state(job.id) == State.ENQUEUED


def test_nothing_is_taken_back_before_everything_that_the_dead_one_started_is_killed(processes):
    standing = processes.worker("program()\nif fork(): program(); stop()")
    register(standing)
    running(standing)
    left = eventually(lambda: len(found := processes.left_by(standing)) == 4 and found, "its processes are there")
    standing.kill()
    assert take_back_neighbours() == 1
    assert not any(tree.alive(pid) for pid in left)


def test_a_worker_that_is_stopped_is_not_dead(processes):
    standing = processes.worker()
    register(standing, pid=standing.pid)
    os.kill(standing.pid, 19)
    job = running(standing)
    assert take_back_neighbours() == 0
    assert (rows.state(job.id), row(standing).state) == (State.PROCESSING, "Online")


def test_a_pid_that_somebody_else_has_now_does_not_keep_a_dead_worker_alive(processes):
    standing, other = processes.worker(), processes.worker()
    register(standing, pid=other.pid)
    standing.kill()
    job = running(standing)
    assert take_back_neighbours() == 1
    assert rows.state(job.id) == State.ENQUEUED
    assert tree.alive(other.pid)


@pytest.mark.parametrize("blind", ["start time", "everything"])
def test_a_worker_whose_lock_is_held_is_not_dead_whatever_can_not_be_seen(processes, monkeypatch, blind):
    standing = processes.worker()
    register(standing)
    job = running(standing)
    if blind == "everything":
        monkeypatch.setattr(identity, "has_ended", lambda pid, started: True)
    else:
        monkeypatch.setattr(identity, "start_time", lambda pid: "")
    assert take_back_neighbours() == 0
    assert rows.state(job.id) == State.PROCESSING
    assert tree.alive(standing.pid)


@pytest.mark.parametrize(
    "elsewhere",
    [{"pid_namespace": "pid:[1]"}, {"boot_id": "another boot"}, {"pid_started": ""}],
    ids=["another namespace", "another machine", "no start time"],
)
def test_of_a_worker_that_is_not_provably_from_here_nothing_is_proven(processes, elsewhere):
    standing = processes.worker()
    register(standing, **elsewhere)
    job = running(standing)
    standing.kill()
    assert take_back_neighbours() == 0
    assert (rows.state(job.id), row(standing).state) == (State.PROCESSING, "Online")
    assert processes.lock_file(standing).exists()


@pytest.mark.parametrize("missing", ["another folder", "no file", "no folder"])
def test_without_the_lock_file_nothing_is_proven_and_the_lease_has_its_time(processes, tmp_path, missing):
    standing = processes.worker()
    register(standing)
    job = running(standing)
    standing.kill()
    folder = processes.run_dir
    if missing == "no file":
        processes.lock_file(standing).unlink()
    elif missing == "another folder":
        folder = tmp_path / "other"
    else:
        (folder := tmp_path / "in the way").write_text("")
    with overridden(worker={"run_dir": str(folder)}):
        assert take_back_neighbours() == 0
    assert rows.state(job.id) == State.PROCESSING


@pytest.mark.parametrize("state", ["Draining", "Offline"])
def test_a_worker_that_was_ending_in_order_is_its_supervisor_s_for_a_while(processes, state):
    standing = processes.worker()
    who = register(standing)
    presence.beat(who, state=state) if state == "Draining" else presence.leave(who.id)
    job = running(standing)
    standing.kill()
    assert take_back_neighbours() == 0
    late = ago(neighbours.SUPERVISORS_TURN + 1)
    execute(f"UPDATE turno.workers SET seen_at = {late}, stopped_at = stopped_at + ({late} - now())")
    assert take_back_neighbours() == 1
    assert rows.state(job.id) == State.ENQUEUED


def test_a_dead_worker_without_jobs_is_marked_offline_at_once(processes):
    standing = processes.worker()
    register(standing)
    standing.kill()
    assert take_back_neighbours() == 0
    assert row(standing).state == "Offline"


def test_a_job_whose_row_somebody_has_locked_is_found_by_the_next_look(processes):
    from tests.races.two import lock, rival

    standing = processes.worker()
    register(standing)
    jobs = [running(standing) for _ in range(2)]
    standing.kill()
    with rival() as other:
        lock(other, jobs[0].id)
        assert take_back_neighbours() == 1
        assert row(standing).state == "Online"
    assert take_back_neighbours() == 1
    assert row(standing).state == "Offline"


def test_the_proof_of_a_dead_worker_stays_though_no_row_here_knows_it(processes):
    """Two databases may share a folder."""
    standing = processes.worker()
    standing.kill()
    assert sweep_run_files() == 0
    assert processes.lock_file(standing).exists()
    os.utime(processes.lock_file(standing), (1, 1))
    assert sweep_run_files() == 1
    assert not processes.lock_file(standing).exists()


def test_it_is_a_routine_of_every_worker_and_not_of_the_leader_alone():
    routines = services()
    assert not routines["neighbours"].exclusive
    assert not routines["run files"].exclusive


def test_when_nobody_is_dead_it_is_one_statement(processes, django_assert_num_queries):
    register(processes.worker())
    take_back_neighbours()
    with django_assert_num_queries(1, using="engine"):
        assert take_back_neighbours() == 0


def test_the_look_at_the_neighbours_finds_running_jobs_and_live_workers_by_index():
    execute(
        "INSERT INTO turno.workers (id, name, host, boot_id, pid_namespace, pid, pid_started, version, queues, state)"
        " SELECT gen_random_uuid(), 'w', 'h', 'boot-' || n % 50, 'pid:[1]', n, 's', '1', '{}', "
        " CASE WHEN n % 100 = 0 THEN 'Online' ELSE 'Offline' END FROM generate_series(1, 5000) AS n"
    )
    rows.make_jobs(3000, State.SUCCEEDED)
    rows.make_jobs(50, State.PROCESSING)
    execute("ANALYZE turno.jobs, turno.workers")
    plan = plan_of(presence.NEIGHBOURS, {"boot_id": "boot-1", "pid_namespace": "pid:[1]", "ending_for": 30.0})
    assert "jobs" not in tables_scanned(plan)
    used = indexes_used(plan)
    assert "workers_one_live_identity" in used
    assert used & {"jobs_of_worker", "jobs_by_state", "jobs_lease_order"}
