"""A job that may run at most once is repeated by nothing but a person, whatever is lost while it runs."""

import os
import signal

import pytest

import tests.kit.beats
import tests.kit.handlers  # noqa: F401
from jobs import transitions
from tests.crash.beside import ISOLATIONS, QUICK, begin
from tests.kit.look import attempts, started, steps, wait_state
from tests.kit.processes import eventually

pytestmark = pytest.mark.crash
TYPES = [f"once.{isolation}" for isolation in ISOLATIONS]
PROCESS = ["once.process"]


def kill_child(fleet, worker):
    os.kill(int(fleet.starts("once.process")[0][3]), signal.SIGKILL)


LOSSES = {
    "its worker is killed": (TYPES, lambda fleet, worker: worker.kill_worker(), "WorkerLost"),
    "its supervisor is killed": (TYPES, lambda fleet, worker: worker.signal(signal.SIGKILL), "WorkerLost"),
    "its worker is frozen": (TYPES, lambda fleet, worker: worker.freeze(), "WorkerLost"),
    "its worker stops": (TYPES, lambda fleet, worker: worker.signal(signal.SIGTERM), "Interrupted"),
    "its child is killed": (PROCESS, kill_child, "WorkerLost"),
    "its forkserver is killed": (
        PROCESS,
        lambda fleet, worker: os.kill(worker.forkserver(), signal.SIGKILL),
        "WorkerLost",
    ),
}


@pytest.mark.parametrize("loss", LOSSES)
def test_it_ends_failed_and_only_a_person_runs_it_again(fleet, loss):
    types, lose, outcome = LOSSES[loss]
    fleet.env |= QUICK
    if "frozen" not in loss:  # only there a lease has to end
        fleet.env["TURNO_WORKER__LEASE_DURATION"] = "60s"
    worker = fleet.start("a", "default:4", "--shutdown-timeout", "100ms").wait_ready()
    ids = {type_: begin(fleet, type_, deaf=True) for type_ in types}
    fleet.start("b", "default:4").wait_ready()
    lose(fleet, worker)
    for type_, id_ in ids.items():
        dead = wait_state(id_, "Failed", 30)
        assert dead.failure_kind == ("interrupted" if outcome == "Interrupted" else "worker_lost")
        assert attempts(id_) == [(1, outcome, True)]
        assert steps(id_)[-1] == ("Processing", "Failed", "never_repeated")
        assert len(fleet.starts(type_)) == 1
    verdicts = transitions.requeue(list(ids.values()), actor="ana")
    assert all(verdict.applied for verdict in verdicts)
    for type_, id_ in ids.items():
        started(fleet, type_, times=2)
        transitions.cancel([id_])
    eventually(lambda: not [s for s in fleet.starts() if int(s[2]) > 2], "nobody starts it a third time")
