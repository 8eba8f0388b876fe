"""A copy that a handler forks and that walks out of the handler ends there, as Python ends a program, and runs nothing
of ours: no second try, no end of the job, no other handler."""

import json
import os
import subprocess
import sys

import pytest

import tests.isolation.handlers  # noqa: F401
from jobs.states import State
from tests.isolation.house import told
from tests.kit.processes import PROJECT

pytestmark = pytest.mark.crash
STATUS = {"return": 0, "exit": 3, "text": 1, "raise": 1, "transient": 1}


@pytest.mark.parametrize("how", STATUS)
def test_in_a_child_a_copy_ends_with_the_code_that_python_would_give_and_is_not_tried_again(house, tmp_path, how):
    ending = house.run("iso.copy", {"how": how, "tell": str(tmp_path / "begun")}, max_attempts=1)
    assert (ending.to, json.loads(ending.result)) == (State.SUCCEEDED, {"status": STATUS[how]})
    assert told(tmp_path / "begun") == ["begun"]
    assert house.result("iso.echo")


WORKER = """
import json, os, sys, threading
import django
django.setup()
import tests.isolation.handlers
from tests.isolation.house import claim_of
from workers.clock import boottime
from workers.execution import prepare
from workers.isolation import HandlerLoop, ThreadPool
from workers.leases import Held
ends, over = {}, threading.Semaphore(0)
def done(execution, ending):
    ends[execution.held.claim.payload["how"]] = ending.result
    os.write(1, f"{os.getpid()}\\n".encode())  # no lock of a stream, which a copy made meanwhile would inherit
    over.release()
runner = HandlerLoop(done) if sys.argv[1] == "iso.async_copy" else ThreadPool(2, done)
if isinstance(runner, HandlerLoop):
    runner.start()
hows = sys.argv[2:]
held = [Held(claim_of(sys.argv[1], {"how": how}), boottime() + 60) for how in hows]
runner.start_all([prepare(one, lambda ctx: None) for one in held])
for _ in hows:
    assert over.acquire(timeout=30)
print(json.dumps(ends), flush=True)
os._exit(0)
"""


@pytest.mark.parametrize("type_", ["iso.thread_copy", "iso.async_copy"])
def test_in_the_workers_own_process_too(type_):
    hows = [*STATUS, *(["waits"] if type_ == "iso.async_copy" else [])]
    env = {**os.environ, "DJANGO_SETTINGS_MODULE": "tests.settings"}
    command = [sys.executable, "-W", "ignore::DeprecationWarning", "-c", WORKER, type_, *hows]
    ran = subprocess.run(command, check=False, cwd=PROJECT, env=env, capture_output=True, text=True, timeout=60)
    *pids, ends = ran.stdout.splitlines()
    expected = {**STATUS, "waits": 1}
    assert {how: json.loads(end)["status"] for how, end in json.loads(ends).items()} == {h: expected[h] for h in hows}
    assert len(pids) == len(hows)  # each job ended once, in the one process
    assert len(set(pids)) == 1
    assert "ValueError: in a copy" in ran.stderr
    assert "a word" in ran.stderr
