"""What runs beside a supervisor, or was put into the background by handlers, is left alone; what nobody owns is not."""

import os
import signal

import pytest

from tests.kit.processes import eventually
from tests.supervisor.stand_in import StandIn
from workers import marks, tree

pytestmark = pytest.mark.crash

READY = "introduce(); say(protocol.ready()); mark('ready')\n"
DOOR = "from workers.supervision import door\nsys.exit(door.supervise([sys.executable, 'worker.py'], []))"
# As `sh -c 'agent & exec manage.py runworker'`: an agent, which puts something into the background when it is told to.
AGENT = """
import time
if os.fork() == 0:
    while not os.path.exists('go'): time.sleep(0.02)
    os.system("setsid sh -c 'echo $$ >> agents; exec sleep 600' &")
    open('agents', 'a').write(f'{os.getpid()}\\n')
    time.sleep(600)
"""


def _numbers(over: StandIn, name: str, count: int) -> list[int]:
    path = over.folder / name
    return eventually(
        lambda: path.exists() and len(lines := path.read_text().split()) == count and list(map(int, lines)), name
    )


def test_what_runs_beside_it_in_its_process_and_what_that_starts_later_is_left_alone(over: StandIn):
    over.start(READY + "forever()", run=DOOR, before=AGENT)
    over.marked("ready")
    (over.folder / "go").touch()
    agents = _numbers(over, "agents", 2)
    try:
        os.kill(over.worker, signal.SIGKILL)  # all that is below the supervisor is killed now
        over.marked("ready", 2)
        over.signal(signal.SIGTERM)
        assert over.wait() == 0
        assert all(tree.alive(pid) for pid in agents)
        assert not over.events("orphans_killed")
    finally:
        for pid in agents:
            os.kill(pid, signal.SIGKILL)


# Puts a program into the background, as a handler in the worker does, with these variables; and one without any
# environment: when that is killed, the supervisor has looked.
BACKGROUND = """
del os.environ["TURNO_SUPERVISOR_FD"]
subprocess.run(["sh", "-c", "setsid sleep 600 & echo $! > NAME"], env={**os.environ, **VARIABLES})
"""
BOTH = (
    "import subprocess\n" + BACKGROUND + "subprocess.run(['sh', '-c', 'setsid sleep 600 & echo $! > other'], env={})\n"
)


def _background(variables: str) -> str:
    return READY + BOTH.replace("NAME", "background").replace("VARIABLES", variables)


def test_what_the_living_workers_handlers_put_into_the_background_is_left_alone_until_its_end(over: StandIn):
    over.start(_background("{}") + "forever()")
    (background,), (other,) = _numbers(over, "background", 1), _numbers(over, "other", 1)
    eventually(lambda: not tree.alive(other), "the supervisor has looked")
    assert background not in over.said("orphans_killed")[0]["pids"]
    assert tree.alive(background)
    os.kill(over.worker, signal.SIGKILL)
    over.marked("ready", 2)
    assert not tree.alive(background)


@pytest.mark.parametrize(
    "variables",
    ["{'TURNO_CHILD': '1'}", "{'TURNO_WORKER_ID': '01234567-89ab-cdef-0123-456789abcdef'}", "{'TURNO_WORKER_ID': ''}"],
    ids=["of a child process", "of another worker", "of nobody"],
)
def test_what_is_not_the_living_workers_own_is_killed(over: StandIn, variables: str):
    over.start(_background(variables) + "forever()")
    (background,) = _numbers(over, "background", 1)
    eventually(lambda: not tree.alive(background), "it is killed")
    assert tree.alive(over.worker)


def test_what_only_forked_is_killed_though_the_worker_has_dropped_its_line_by_then(over: StandIn):
    over.start(
        READY
        + "del os.environ['TURNO_SUPERVISOR_FD']\nif os.fork() == 0:\n    if os.fork(): os._exit(0)\n    os.setsid()\n"
        "    os.closerange(3, 99); mark('forked', os.getpid()); forever()\nos.wait(); forever()"
    )
    forked = int(over.marked("forked")[0][0])
    eventually(lambda: not tree.alive(forked), "it is killed")
    assert tree.alive(over.worker)


def test_each_worker_is_started_with_an_id_of_its_own(over: StandIn):
    over.start("mark('id', os.environ['TURNO_WORKER_ID'])\n" + READY + "if lives() < 3: os._exit(1)\nforever()")
    over.marked("ready", 3)
    ids = [mark[0] for mark in over.marks("id")]
    assert len(set(ids)) == 3
    assert f"TURNO_WORKER_ID={ids[-1]}".encode() in marks.environment(over.worker)
