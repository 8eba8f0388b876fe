"""Declared recurring jobs follow their file, and people's hands are left alone."""

import pytest
from django.utils import translation

from jobs import schedules
from jobs.conf import overridden
from jobs.errors import Conflict
from jobs.schedules.declared import EXAMPLES, synchronise
from tests.jobs.enqueue_types import registered
from tests.transitions.recurring import fire_all, jobs_of, make_recurring, recurring
from tests.transitions.rows import execute, select

pytestmark = pytest.mark.django_db
NIGHTLY = {"type": "test.report", "cron": "0 3 * * *", "timezone": "America/Sao_Paulo", "payload": {"rows": 5}}


@pytest.fixture(autouse=True)
def types():
    with registered(), translation.override("en"):
        yield


def declare(*, samples=False, **entries):
    """What a worker says that starts with these."""
    with overridden(recurring_jobs=entries, samples={"enabled": samples}):
        return [(problem.name, problem.error) for problem in synchronise()]


def rows():
    found = select("SELECT id, name FROM turno.recurring_jobs")
    return {row["name"]: recurring(row["id"]) for row in found}


def test_what_is_declared_becomes_a_row():
    assert declare(nightly=NIGHTLY, off={"type": "test.any", "cron": "@hourly", "enabled": False}) == []
    nightly, off = rows()["nightly"], rows()["off"]
    assert (nightly["type"], nightly["cron"], nightly["timezone"]) == ("test.report", "0 3 * * *", "America/Sao_Paulo")
    assert (nightly["source"], nightly["enabled"], nightly["owner"]) == ("declared", True, None)
    assert nightly["next_run_at"] is not None
    assert (off["enabled"], off["next_run_at"], off["disabled_by"]) == (False, None, "file")


def test_a_second_start_changes_nothing():
    declare(nightly=NIGHTLY)
    before = rows()
    assert declare(nightly=NIGHTLY) == []
    assert rows() == before


@pytest.mark.parametrize(
    "change",
    [
        {"cron": "0 4 * * *"}, {"timezone": "UTC"}, {"payload": {"rows": 6}}, {"payload": {}}, {"type": "test.any"},
        {"queue": "slow"}, {"priority": 2}, {"overlap": "allow"}, {"misfire": "all"},
    ],
)  # fmt: skip
def test_every_field_follows_the_file(change):
    declare(nightly=NIGHTLY)
    before = rows()["nightly"]
    declare(nightly=NIGHTLY | change)
    after = rows()["nightly"]
    [name] = change
    if name == "payload":
        [row] = select("SELECT payload FROM turno.recurring_jobs")
        assert row["payload"] == change["payload"]
    else:
        assert after[name] == change[name]
    assert (after["id"], after["version"]) == (before["id"], 2)
    assert (after["next_run_at"] == before["next_run_at"]) == (name not in ("cron", "timezone"))


def test_what_a_person_disabled_stays_so_and_what_one_enabled_too():
    off = NIGHTLY | {"enabled": False}
    declare(nightly=NIGHTLY, off=off)
    schedules.disable(rows()["nightly"]["id"], actor="user:ana")
    schedules.enable(rows()["off"]["id"], actor="user:ana")
    declare(nightly=NIGHTLY | {"cron": "0 4 * * *"}, off=off | {"cron": "0 4 * * *"})
    nightly, other = rows()["nightly"], rows()["off"]
    assert (nightly["enabled"], nightly["disabled_by"], nightly["cron"]) == (False, "user:ana", "0 4 * * *")
    assert (other["enabled"], other["cron"]) == (True, "0 4 * * *")


def test_what_the_file_drops_is_disabled_and_says_why_and_comes_back_as_it_was():
    declare(on=NIGHTLY, off=NIGHTLY)
    schedules.disable(rows()["off"]["id"], actor="user:ana")
    before = rows()
    assert declare() == []
    dropped = rows()
    assert (dropped["on"]["enabled"], dropped["on"]["disabled_by"]) == (False, "configuration")
    assert (dropped["off"]["enabled"], dropped["off"]["disabled_by"]) == (False, "configuration:user:ana")
    assert declare() == []
    assert rows() == dropped  # it is said once
    with pytest.raises(Conflict):
        schedules.enable(dropped["on"]["id"], actor="user:ana")
    declare(on=NIGHTLY, off=NIGHTLY)
    after = rows()
    assert (after["on"]["id"], after["on"]["enabled"], after["on"]["disabled_by"]) == (before["on"]["id"], True, None)
    assert (after["off"]["enabled"], after["off"]["disabled_by"]) == (False, "user:ana")


def test_a_row_that_somebody_made_by_hand_is_told_and_left():
    id_ = make_recurring(name="nightly", cron="5 5 * * *")
    before = recurring(id_)
    [(name, error)] = declare(nightly=NIGHTLY, other=NIGHTLY)
    assert (name, error) == ("nightly", "A recurring job of this name was made by hand; it stays as it is.")
    assert recurring(id_) == before
    assert "other" in rows()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"cron": "x y"}, "cron: "),
        ({"timezone": "Mars/Olympus"}, "timezone: "),
        ({"type": "nobody.knows"}, "type: There is no such job type."),
        ({"payload": {"rows": 0}}, "payload.rows: "),
    ],
)
def test_a_bad_one_is_told_and_stops_nothing_and_keeps_what_it_had(change, said):
    declare(nightly=NIGHTLY)
    before = rows()["nightly"]
    [(name, error)] = declare(nightly=NIGHTLY | change, bad=NIGHTLY | change, good=NIGHTLY)[:1]
    assert name == "nightly"
    assert error.startswith(said)
    assert rows()["nightly"] == before
    assert set(rows()) == {"nightly", "good"}


def test_what_the_database_refuses_is_told_and_stops_nothing():
    execute("ALTER TABLE turno.recurring_jobs ADD CONSTRAINT no_nights CHECK (name <> 'nightly')")  # rolled back
    [(name, error)] = declare(nightly=NIGHTLY, good=NIGHTLY)
    assert (name, "no_nights" in error) == ("nightly", True)
    assert set(rows()) == {"good"}


def test_one_that_could_not_fire_is_tried_again_by_the_next_start():
    declare(nightly=NIGHTLY)
    execute("UPDATE turno.recurring_jobs SET type = 'gone.away', next_run_at = now()")
    fire_all()
    assert rows()["nightly"]["error"] is not None
    declare(nightly=NIGHTLY)
    after = rows()["nightly"]
    assert (after["error"], after["type"]) == (None, "test.report")
    assert after["next_run_at"] is not None


def test_the_samples_bring_two_examples_that_nobody_has_to_switch_off():
    assert declare(samples=True) == []
    found = rows()
    assert set(found) == set(EXAMPLES)
    assert len(found) == 2
    assert not any(row["enabled"] for row in found.values())
    schedules.enable(found["example-sync"]["id"], actor="user:ana")
    execute("UPDATE turno.recurring_jobs SET next_run_at = now() WHERE name = 'example-sync'")
    fire_all()
    [job] = jobs_of(found["example-sync"]["id"])
    assert (job["type"], job["state"]) == ("integration.sync", "Enqueued")
    declare(samples=True)
    assert rows()["example-sync"]["enabled"] is True
    declare(samples=False)
    assert rows()["example-sync"]["disabled_by"] == "configuration"


def test_a_declared_one_of_an_examples_name_takes_its_place():
    declare(samples=True)
    declare(samples=True, **{"example-sync": NIGHTLY})
    assert rows()["example-sync"]["type"] == "test.report"
