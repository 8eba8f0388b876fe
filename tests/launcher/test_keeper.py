"""What the keeper does when the machine does not play along."""

import io
import signal
import sys
from pathlib import Path

import pytest

from tests.launcher.stand_in import until
from turno.launcher.children import Child
from turno.launcher.keeper import Keeper
from turno.launcher.say import Console
from turno.launcher.signals import Signals
from turno.launcher.state import State

FOREVER = "import signal; signal.pause()"
# Like a worker with a long job: the first signal asks it to stop, the second one hurries it.
PATIENT = """
import os, signal, time
asked = []
def stop(*_):
    asked.append(1)
    if len(asked) > 1:
        print("hurried", flush=True)
        os._exit(0)
signal.signal(signal.SIGTERM, stop)
print("listening", flush=True)
while True:
    time.sleep(0.1)  # in naps: a signal just before pause() begins would leave its handler waiting for another
"""


@pytest.fixture
def keeper(tmp_path):
    found = Keeper(Console(io.StringIO()), Signals(), State(), tmp_path / "state.json")
    yield found
    for child in found.children:
        child.signal(signal.SIGKILL)
        if child.process:
            child.process.wait()


def _child(folder: Path, code: str) -> Child:
    return Child("worker-1", [sys.executable, "-c", code], folder / "log", {}, folder, 60.0)


def _told(keeper: Keeper) -> str:
    assert isinstance(keeper.console.stream, io.StringIO)
    return keeper.console.stream.getvalue()


def test_two_requests_to_stop_at_once_hurry_a_worker_as_two_one_after_the_other_do(keeper, tmp_path):
    child = _child(tmp_path, PATIENT)
    keeper.children = [child]
    child.start()
    until(lambda: child.last_words() == "listening", "the worker listens")
    keeper._forced, keeper.signals.count = 1, 2  # the second came before the first was acted upon
    keeper._stop([child], "Stopping")
    assert child.last_words() == "hurried"


def test_a_note_that_cannot_be_written_ends_nothing_and_is_written_later(keeper, tmp_path):
    keeper.note_path = tmp_path / "gone" / "state.json"
    child = _child(tmp_path, FOREVER)
    keeper.children = [child]
    child.start()
    child.signal(signal.SIGKILL)
    assert child.process is not None
    child.process.wait()
    keeper.tend()
    child.due_at = 0.0
    keeper.tend()
    assert _told(keeper).count("state.") == 1  # said once
    (tmp_path / "gone").mkdir()
    keeper.tend()
    assert keeper.note_path.exists()


def test_a_process_that_cannot_be_started_again_is_tried_again_after_a_pause(keeper, tmp_path):
    child = _child(tmp_path, FOREVER)
    keeper.children = [child]
    child.log = tmp_path / "gone" / "log"
    keeper.tend()
    assert "gone" in _told(keeper)
    assert child.failures == 1
    child.log, child.due_at = tmp_path / "log", 0.0
    keeper.tend()
    assert child.running
