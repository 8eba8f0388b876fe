"""The benchmarks' parts: the handlers' tally, the drivers' pipe, processor time of trees, the peers' requirements."""

import multiprocessing
import os
import re
import subprocess
import sys
import threading
import time

import pytest
from pika import URLParameters

from benchmarks import tally
from benchmarks.driver import Driver, DriverError, resting
from benchmarks.sides.peers import REQUIREMENTS
from benchmarks.usage import Meter, cpu_seconds, memory_mb
from tests.kit.processes import PROJECT

VERBS = """
from benchmarks.driver import serve


def double(number):
    print("this is none of the answers", flush=True)
    return [number, number]


serve({"double": double, "fail": lambda: 1 / 0, "leave": lambda: __import__("os")._exit(3)})
"""
BUSY = "import time\nwhile time.process_time() < 0.3: pass\nprint('done', flush=True)\nimport sys\nsys.stdin.read()"


@pytest.fixture
def marks(tmp_path, monkeypatch):
    """A folder for handlers that run in this process and in children of it."""
    monkeypatch.setenv(tally.VARIABLE, str(tmp_path))
    tally._marks.clear()
    yield tally.Tally(tmp_path)
    tally._marks.clear()


def test_every_thread_and_every_forked_process_is_counted_once(marks):
    def much() -> None:
        for _ in range(500):
            tally.ran()

    threads = [threading.Thread(target=much) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    child = multiprocessing.get_context("fork").Process(target=much)
    child.start()
    child.join()

    assert marks.count() == 2500


def test_what_was_late_and_what_has_ended_is_read_once(marks):
    tally.late(time.monotonic() - 0.5)
    tally.ended("a-job")

    [late], ended = marks.lateness(), marks.notes()

    assert late >= 500
    assert ended.keys() == {"a-job"}
    assert ended["a-job"] <= time.monotonic()
    assert (marks.lateness(), marks.notes()) == ([], {})
    assert marks.count() == 2


@pytest.fixture
def driver(tmp_path):
    """One with three verbs."""
    command = [sys.executable, "-c", VERBS]
    found = Driver(command, os.environ | {"PYTHONPATH": str(PROJECT)}, PROJECT, tmp_path / "log")
    yield found
    found.close()


def test_a_driver_answers_and_what_it_prints_besides_is_no_answer(driver, tmp_path):
    assert driver.ask("double", number=2) == [2, 2]
    assert (tmp_path / "log").read_text() == "this is none of the answers\n"


def test_a_driver_that_fails_says_why_and_goes_on(driver):
    with pytest.raises(DriverError, match="ZeroDivisionError"):
        driver.ask("fail")
    assert driver.ask("double", number=1) == [1, 1]


def test_a_driver_that_has_ended_is_no_answer(driver):
    with pytest.raises(DriverError, match="the driver ended"):
        driver.ask("leave")


def test_the_processor_time_of_a_tree_is_that_of_all_below_it_while_they_live_and_afterwards():
    code = f"import subprocess, sys\nsubprocess.run([sys.executable, '-c', {BUSY!r}])\nprint('over')\nsys.stdin.read()"
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as root:
        meter = Meter({"tree": [root.pid]})
        assert root.stdout is not None
        assert root.stdin is not None
        assert root.stdout.readline() == "done\n"
        alive = meter.spent()["tree"]
        memory = memory_mb([root.pid])
        root.stdin.close()
        assert root.stdout.readline() == "over\n"
        over = cpu_seconds([root.pid])

    assert alive >= 0.25
    assert over >= 0.25
    assert memory > 1


def test_every_wish_of_the_peers_is_locked_with_its_hash_and_no_address_is_named():
    wishes = re.findall(r"^([a-z][\w-]*)", REQUIREMENTS.with_suffix(".in").read_text(), re.MULTILINE)
    locked = REQUIREMENTS.read_text()
    entries = re.findall(r"^([a-z][\w-]*)==[^\s;]+[^\n]*\\\n    --hash=sha256:[0-9a-f]{64}", locked, re.MULTILINE)

    assert wishes
    assert set(wishes) <= set(entries)
    assert len(entries) == len(re.findall(r"^[a-z]", locked, re.MULTILINE))
    assert "://" not in locked


@pytest.mark.parametrize("end", ["", "/", "/%2F", "/?channel_max=7"])
def test_a_drivers_connection_to_the_broker_may_rest_for_as_long_as_the_others_are_measured(end):
    parameters = URLParameters(resting(f"amqp://turno:secret@127.0.0.1:5672{end}"))
    assert parameters.heartbeat == 0
    assert (parameters.virtual_host, parameters.port) == ("/", 5672)
