"""Folders that killed executions have left: removed when the job is over, and nothing else is."""

import os
import time
from uuid import uuid4

import pytest

from jobs.states import State
from tests.transitions import rows
from tests.transitions.rows import make_job
from workers.folders import QUIET, STRANGE, sweep_folders

pytestmark = pytest.mark.django_db


def left(place, job, age=QUIET + 60, *, name=None):
    """A folder as an execution leaves it, with files in it, last changed `age` seconds ago."""
    folder = place / (name or f"turno-{job}-0123456789ab")
    (folder / "deep").mkdir(parents=True)
    (folder / "deep" / "page.html").write_text("x")
    (folder / "result.pdf").write_text("x")
    then = time.time() - age
    for path in (folder / "deep" / "page.html", folder / "deep", folder / "result.pdf", folder):
        os.utime(path, (then, then))
    return folder


@pytest.fixture
def over(db):
    return make_job(State.SUCCEEDED).id


def test_the_folder_of_a_job_that_runs_no_more_goes_and_that_of_a_running_one_stays(tmp_path, over):
    gone, stays = left(tmp_path, over), left(tmp_path, make_job(State.PROCESSING).id)
    assert sweep_folders(tmp_path, using="default") == 1
    assert (gone.exists(), stays.exists()) == (False, True)


def test_the_row_goes_first_then_the_folder_but_another_databases_job_is_given_time(tmp_path, over):
    folder = left(tmp_path, over)
    rows.execute("DELETE FROM turno.jobs")
    assert sweep_folders(tmp_path, using="default") == 0
    other = left(tmp_path, uuid4(), STRANGE + 60)
    assert sweep_folders(tmp_path, using="default") == 1
    assert (folder.exists(), other.exists()) == (True, False)


@pytest.mark.parametrize("where", ["", "result.pdf", "deep"])
def test_a_folder_in_which_something_happened_lately_stays(tmp_path, over, where):
    folder = left(tmp_path, over)
    os.utime(folder / where)
    assert sweep_folders(tmp_path, using="default") == 0
    assert folder.exists()


@pytest.mark.parametrize(
    "name",
    [
        "turno-test-x",
        "turno-{id}",
        "turno-{id}-",
        "turno-{id}-../../etc",
        "x-turno-{id}-0123456789ab",
        "turno-{ID}-0123456789ab",
    ],
)
def test_what_is_not_named_as_ours_stays(tmp_path, over, name):
    named = name.format(id=over, ID=str(over).upper()).replace("/", "_")
    left(tmp_path, over, STRANGE * 2, name=named)
    assert sweep_folders(tmp_path, using="default") == 0
    assert (tmp_path / named / "result.pdf").exists()


def test_links_lead_nowhere(tmp_path, over):
    """Neither one that is named as ours nor one in a folder of ours."""
    safe = left(tmp_path / "elsewhere", over, STRANGE * 2, name="precious")
    (tmp_path / "temporary").mkdir()
    link = tmp_path / "temporary" / f"turno-{over}-0123456789ab"
    link.symlink_to(safe)
    os.utime(link, (1, 1), follow_symlinks=False)
    assert sweep_folders(tmp_path / "temporary", using="default") == 0
    folder = left(tmp_path / "temporary", over, name=f"turno-{over}-abcdefgh")
    (folder / "out").symlink_to(safe)
    then = time.time() - 2 * QUIET
    for path in (folder / "out", folder):
        os.utime(path, (then, then), follow_symlinks=False)
    assert sweep_folders(tmp_path / "temporary", using="default") == 1
    assert (safe / "result.pdf").read_text() == "x"
    assert link.is_symlink()


def test_no_such_place_is_no_error(tmp_path):
    assert sweep_folders(tmp_path / "nowhere", using="default") == 0


def test_a_file_of_that_name_is_no_folder(tmp_path, over):
    file = tmp_path / f"turno-{over}-0123456789ab"
    file.write_text("x")
    os.utime(file, (1, 1))
    assert sweep_folders(tmp_path, using="default") == 0
    assert file.exists()
