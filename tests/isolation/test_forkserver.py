"""The forkserver is killed, stopped, short of processes, or loses its worker: nothing runs on, and work goes on."""

import os
import resource
import select
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import tests.isolation.handlers  # noqa: F401
from jobs.states import Outcome, State
from tests.isolation.house import files_of, gone, told, zombies
from tests.kit.processes import PROJECT, eventually
from workers import tree
from workers.conclusion import Death, Fault
from workers.isolation import ForkServer
from workers.leases import Interrupt

pytestmark = pytest.mark.crash


@pytest.fixture
def configured(monkeypatch):
    """A forkserver that is started anew finds the handlers of these tests in its configuration."""
    monkeypatch.setenv("TURNO_HANDLERS", '["tests.isolation.handlers"]')
    monkeypatch.setenv("TURNO_SAMPLES__ENABLED", "false")


def test_the_forkserver_and_a_child_hold_no_connection_and_one_or_two_threads(house):
    house.result("iso.echo")
    [child] = house.pool.children
    for pid, threads in ((house.server.pid, 1), (child, 2)):
        assert len(list(Path(f"/proc/{pid}/task").iterdir())) == threads
        links = [str(file.readlink()) for file in Path(f"/proc/{pid}/fd").iterdir()]
        # The forkserver's channel and the pair that wakes it; the child's three.
        assert len([link for link in links if link.startswith("socket:")]) == 3, links


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_signals_that_ask_to_stop_are_not_for_the_forkserver(house, number):
    os.kill(house.server.pid, number)
    assert house.result("iso.echo")
    assert tree.alive(house.server.pid)


def test_a_killed_forkserver_costs_the_jobs_that_ran_and_a_new_one_takes_over(house, configured, tmp_path):
    idle = house.result("iso.echo")["pid"]
    tell = tmp_path / "pids"
    running = house.start("iso.family", {"tell": str(tell), "depth": 2, "setsid": True})
    asked = house.start("iso.hold", {"how": "deaf", "tell": str(tmp_path / "pid")})
    pids = [*told(tell, 3), *told(tmp_path / "pid"), idle]
    asked.ask(Interrupt.CANCELLED)
    os.kill(house.server.pid, signal.SIGKILL)
    lost = house.end(running)
    gone(pids, 0)
    assert (lost.outcome, lost.lost, lost.to) == (Outcome.WORKER_LOST, True, State.ENQUEUED)
    assert lost.error.message.startswith(Death(fault=Fault.ABANDONED).text())
    assert house.end(asked).outcome == Outcome.CANCELLED
    assert house.result("iso.echo")["pid"] != idle
    assert not zombies(os.getpid())


def test_a_handler_that_kills_its_forkserver_is_lost(house, configured):
    ending = house.run("iso.kill_parent", {"signal": int(signal.SIGKILL)})
    assert ending.outcome == Outcome.WORKER_LOST
    assert house.result("iso.echo")


def test_a_stopped_forkserver_is_replaced_when_a_child_dies_and_it_does_not_say_so(house, configured, tmp_path):
    tell = tmp_path / "pids"
    dying = house.start("iso.family", {"tell": str(tell), "depth": 2, "setsid": True})
    pids = told(tell, 3)
    os.kill(house.server.pid, signal.SIGSTOP)
    dying.ask(Interrupt.LOST)
    assert house.end(dying).outcome == Outcome.INTERRUPTED
    gone([*pids, house.first_server], 0)
    assert house.result("iso.echo")


def test_a_job_waits_while_no_process_can_be_forked_and_runs_when_one_can(house):
    house.result("iso.fresh")
    eventually(lambda: not house.pool.children, "it has ended")
    before = resource.prlimit(house.server.pid, resource.RLIMIT_NOFILE)
    resource.prlimit(house.server.pid, resource.RLIMIT_NOFILE, (files_of(house.server.pid), before[1]))
    held = house.start("iso.echo", {"a": 1})
    cancelled = house.start("iso.echo", {"a": 2})
    cancelled.ask(Interrupt.CANCELLED)
    assert house.end(cancelled).outcome == Outcome.CANCELLED
    assert not house.ended(held)
    resource.prlimit(house.server.pid, resource.RLIMIT_NOFILE, before)
    assert house.end(held).to == State.SUCCEEDED


def test_a_worker_that_goes_before_it_heard_anything_is_the_end_and_no_fault():
    server = ForkServer.fork()
    assert select.select([server.channel], [], [], 20)[0], "it is ready"
    server.channel.close()
    assert os.waitstatus_to_exitcode(os.waitpid(server.pid, 0)[1]) == 0


WORKER = """
import os, sys, time, django
django.setup()
import tests.isolation.handlers
from tests.isolation.house import House
house = House()
house.start("iso.family", {"tell": sys.argv[1], "depth": 2, "setsid": True})
house.start("iso.hold", {"how": sys.argv[3], "tell": sys.argv[1]})
house.result("iso.echo")
open(sys.argv[2], "w").write(f"{house.server.pid} {' '.join(map(str, house.pool.children))}\\n")
time.sleep(3600)
"""


@pytest.mark.parametrize(
    ("how", "stopped"), [("busy", False), ("deaf", False), ("stuck", False), ("busy", True), ("deaf", True)]
)
def test_a_killed_worker_takes_forkserver_children_and_all_below_with_it(tmp_path, how, stopped):
    tell, about = tmp_path / "pids", tmp_path / "about"
    env = {**os.environ, "DJANGO_SETTINGS_MODULE": "tests.settings"}
    worker = subprocess.Popen([sys.executable, "-c", WORKER, str(tell), str(about), how], cwd=PROJECT, env=env)
    try:
        pids = [*told(about)[0].split(), *told(tell, 4)]
        server = int(pids[0])
        os.kill(server, signal.SIGSTOP if stopped else 0)
        children = tree.children(server)
        assert len(children) == 3
        worker.kill()
        worker.wait(60)
        if stopped:  # the children end by themselves; what they leave, when it goes on
            gone(children, 30)
            os.kill(server, signal.SIGCONT)
        gone(pids, 30)
    finally:
        worker.kill()
        worker.wait(60)
