"""Real workers: one that is started again after a crash takes back at once, whoever else may be around."""

import os
import signal

import pytest

import tests.kit.beats
import tests.kit.handlers  # noqa: F401
from jobs.enqueue import enqueue
from jobs.models import Worker
from tests.kit.look import attempts, job, started, steps, wait_state
from tests.kit.processes import LAPSING, eventually
from tests.neighbours.contained import Contained, possible
from workers import tree

pytestmark = pytest.mark.crash
LONG = {"TURNO_WORKER__LEASE_DURATION": "10min", "TURNO_WORKER__SILENT_AFTER": "5min"}
TAKEN = ("Processing", "Enqueued", "taken_back")


@pytest.fixture
def run_dir(fleet):
    """All workers of the test lock their files in one folder."""
    folder = fleet.folder / "run"
    fleet.env["TURNO_WORKER__RUN_DIR"] = str(folder)
    return folder


def beats(*names, times=4):
    """Wait until the workers have gone on beating, and have looked at their neighbours as often."""
    since = {name: Worker.objects.get(name=name).seen_at for name in names}

    def beaten():
        rows = {row.name: row for row in Worker.objects.filter(name__in=names)}
        return all((rows[name].seen_at - since[name]).total_seconds() > 0.5 * times for name in names)

    eventually(beaten, f"{names} go on")


@pytest.mark.parametrize("type_", ["probe.async", "probe.thread"])
def test_a_worker_that_is_started_anew_takes_back_what_its_killed_predecessor_left_long_before_the_lease_ends(
    fleet, run_dir, type_
):
    first = fleet.start("a", **LONG).wait_ready()
    id_ = enqueue(type_, {"key": "k", "hold": 600}).id
    [(_, _, _, pid, _)] = started(fleet, "k")
    first.signal(signal.SIGKILL)  # the supervisor: its worker dies with it
    first.wait()
    fleet.start("b", **LONG).wait_ready()
    assert len(started(fleet, "k", times=2)) == 2
    assert not tree.alive(int(pid))
    assert TAKEN in steps(id_)
    assert attempts(id_) == [(1, "WorkerLost", True)]
    eventually(lambda: Worker.objects.get(name="a").state == "Offline", "the dead worker is Offline")


def test_a_live_neighbour_takes_back_as_well(fleet, run_dir):
    fleet.start("a", "default:1", **LONG).wait_ready()
    id_ = enqueue("probe.async", {"key": "k", "hold": 600}).id
    started(fleet, "k")
    other = fleet.start("b", "default:1", **LONG).wait_ready()
    doomed = Worker.objects.get(name="a")
    beats("a", "b")
    assert attempts(id_) == []
    os.kill(doomed.pid, signal.SIGKILL)
    started(fleet, "k", times=2)
    assert TAKEN in steps(id_)
    assert job(id_).lost_count == 1
    assert other.process.poll() is None


def test_a_crash_is_charged_though_a_stop_comes_in_the_pause_before_the_successor(fleet, run_dir):
    worker = fleet.start("a", **LONG).wait_ready()
    types = ("probe.thread", "probe.once")
    ids = [enqueue(type_, {"key": type_, "hold": 600}).id for type_ in types]
    for type_ in types:
        started(fleet, type_)
    worker.kill_worker()
    eventually(lambda: worker.events("supervisor.restarting"), "its supervisor waits")
    worker.signal(signal.SIGTERM)
    assert worker.wait(120) == 0
    assert [attempts(id_) for id_ in ids] == [[(1, "WorkerLost", True)]] * 2
    assert [step[-2:] for step in (steps(ids[0])[-1], steps(ids[1])[-1])] == [TAKEN[1:], ("Failed", "never_repeated")]
    assert [(job(id_).lost_count, job(id_).failure_kind) for id_ in ids] == [(1, None), (1, "worker_lost")]


def test_a_worker_that_could_make_no_lock_file_is_given_back_by_its_supervisor(fleet):
    worker = fleet.start("a", "default:4", "--shutdown-timeout", "0s", TURNO_WORKER__RUN_DIR="/proc/none", **LONG)
    worker.wait_ready()
    id_ = enqueue("beats.thread", {"key": "k", "deaf": True}).id
    started(fleet, "k")
    worker.signal(signal.SIGTERM)
    assert worker.wait(60) == 0
    eventually(lambda: worker.events("lock.none"), "it says lock.none")
    assert attempts(id_) == [(1, "Interrupted", False)]
    assert job(id_).state == "Enqueued"


def test_a_worker_that_has_ended_in_order_leaves_no_file(fleet, run_dir):
    worker = fleet.start("a").wait_ready()
    assert len(list(run_dir.glob("*.lock"))) == 1
    worker.signal(signal.SIGTERM)
    assert worker.wait() == 0
    assert list(run_dir.glob("*.lock")) == []


def test_workers_in_two_folders_prove_nothing_of_each_other_and_recovery_does_it(fleet):
    first = fleet.start("a", **LAPSING, TURNO_WORKER__RUN_DIR=str(fleet.folder / "one")).wait_ready()
    id_ = enqueue("probe.async", {"key": "k", "hold": 2}).id
    started(fleet, "k")
    first.signal(signal.SIGKILL)
    fleet.start("b", TURNO_WORKER__RUN_DIR=str(fleet.folder / "two")).wait_ready()
    wait_state(id_, "Succeeded")
    assert ("Processing", "Enqueued", "worker_lost") in steps(id_)


class TestContainersWithOneHostName:
    """Each worker is in a pid namespace of its own, where these may be made; pids and host names are the same."""

    @pytest.fixture
    def contain(self, fleet, run_dir):
        made = []

        def start(name, *, real=True, **env):
            made.append(Contained(name, fleet.folder, fleet.env | env, real=real))
            return made[-1]

        yield start
        for container in made:
            container.close()

    @pytest.mark.parametrize("real", [True, False], ids=["namespaces", "other values"])
    def test_never_take_each_other_for_dead_and_a_removed_one_is_left_to_its_lease(self, fleet, contain, real):
        first = contain("a", real=real, **LAPSING)
        one = first.wait_ready()
        id_ = enqueue("probe.async", {"key": "k", "hold": 600}).id
        started(fleet, "k")
        two = contain("b", real=real).wait_ready()
        assert (one.host, one.boot_id) == (two.host, two.boot_id)
        assert one.pid == two.pid or not (real and possible())
        assert one.pid_namespace != two.pid_namespace
        beats("a", "b")
        assert attempts(id_) == []
        first.close()
        started(fleet, "k", times=2)
        assert ("Processing", "Enqueued", "worker_lost") in steps(id_)
        assert attempts(id_) == [(1, "WorkerLost", True)]

    def test_one_whose_worker_was_killed_takes_back_at_once_by_itself(self, fleet, contain):
        first = contain("a", **LONG)
        old = first.wait_ready()
        contain("b", **LONG).wait_ready()
        ids = [enqueue("probe.async", {"key": f"k{n}", "hold": 600}).id for n in range(4)]
        for n in range(4):
            started(fleet, f"k{n}")
        held = [id_ for id_ in ids if job(id_).worker_id == old.id]
        kept = [id_ for id_ in ids if id_ not in held]
        assert held
        first.kill_worker()
        eventually(lambda: all(TAKEN in steps(id_) for id_ in held), "its successor has taken them back")
        assert not any(attempts(id_) for id_ in kept)
