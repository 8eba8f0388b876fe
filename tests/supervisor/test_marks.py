"""By what a process is known as a worker's, and where a worker's id comes from."""

import os
import subprocess
import sys
from uuid import UUID

import pytest

from workers import identity, marks

OTHER = "0197a1b2-0000-7000-8000-00000000abcd"


def test_the_variables_of_a_process_are_those_of_its_program_and_none_of_one_that_is_gone():
    with subprocess.Popen(["/bin/sleep", "60"], env={"A": "1", "B": "x=y"}) as process:
        assert {b"A=1", b"B=x=y"} <= marks.environment(process.pid)
        process.kill()
    assert marks.environment(process.pid) == frozenset()
    assert not marks.of_workers_handlers(process.pid, OTHER)


def test_a_supervised_worker_has_the_id_that_it_was_started_with(monkeypatch):
    monkeypatch.setenv("TURNO_WORKER_ID", OTHER)
    assert identity.worker_id(supervised=True) == UUID(OTHER)
    assert os.environ["TURNO_WORKER_ID"] == OTHER


@pytest.mark.parametrize(
    ("given", "supervised"), [(OTHER, False), ("", True), (OTHER.upper(), True), (f"{OTHER}\n", True), ("x", True)]
)
def test_an_id_that_nobody_gave_it_or_that_is_none_is_replaced_by_a_new_one_for_whatever_handlers_start(
    monkeypatch, given, supervised
):
    monkeypatch.setenv("TURNO_WORKER_ID", given)
    found = identity.worker_id(supervised)
    assert str(found).lower() != given.strip().lower()
    assert os.environ["TURNO_WORKER_ID"] == str(found)
    code = "import os; print(os.environ['TURNO_WORKER_ID'])"
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert told.stdout.strip() == str(found)
