"""Everything at once over thousands of jobs of every kind: no promise is broken. See `tests.crash.storm`."""

import os
import subprocess
import sys

import pytest

from tests.kit.processes import PROJECT
from tests.kit.rabbitmq_server import GIVEN
from turno.launcher.rabbitmq import programs

PATIENCE = 2400  # seconds for one that lasts some minutes, on a busy machine
ENDING = 300
PROFILES = ["embedded", "cluster"]
# In turn: two at once would leave each other no time.
pytestmark = [pytest.mark.crash, pytest.mark.xdist_group("storm")]


@pytest.fixture(autouse=True)
def promises_kept():
    """A storm has a database of its own, and looks at it itself."""


def weathered(profile, minutes, seed, a_second=20):
    """Let a storm happen, on servers and with workers of its own, and be judged."""
    if profile == "cluster" and GIVEN in os.environ and programs() is None:
        pytest.skip(f"the server of {GIVEN} is not the storm's own, and there is no other")
    words = ["--profile", profile, "--minutes", str(minutes), "--seed", str(seed), "--jobs-per-second", str(a_second)]
    command = [sys.executable, "-m", "tests.crash.storm", *words]
    with subprocess.Popen(command, cwd=PROJECT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as storm:
        try:
            told, _ = storm.communicate(timeout=PATIENCE)
        except BaseException:
            storm.terminate()  # it ends what it has started
            try:
                storm.wait(ENDING)
            except subprocess.TimeoutExpired:
                storm.kill()  # its servers end with it
            raise
    assert storm.returncode == 0, told[-20_000:]
    assert "Every rule held." in told


@pytest.mark.parametrize("profile", PROFILES)
def test_a_storm_breaks_no_promise(profile):
    weathered(profile, 0.75, 1, a_second=15)


@pytest.mark.longo
@pytest.mark.parametrize("seed", [2, 3, 4])
@pytest.mark.parametrize("profile", PROFILES)
def test_a_long_storm_breaks_no_promise(profile, seed):
    weathered(profile, 5, seed)
