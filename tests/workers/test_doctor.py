"""`manage.py turno check`: what is well, what wants attention, what is broken; exit codes, JSON, a bad environment."""

import json
import os
import subprocess
import sys

import pytest
from django.core.management import call_command
from django.db import connection

from jobs import health, invariants
from jobs.conf import overridden
from jobs.ids import new_id
from jobs.queries import Concern, Kind
from tests.kit.processes import PROJECT
from tests.transitions.flow import enqueue
from tests.transitions.rows import ago, ahead, execute, make_job, make_letter, make_worker
from workers import doctor
from workers.doctor.concerns import told

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def nothing_remembered():
    health.forget()
    yield
    health.forget()


def checked():
    """The lines by what they are about, and the exit code."""
    said = []
    code = doctor.check(said.append, as_json=True, margin=0)
    document = json.loads("".join(said))
    lines = {}
    for line in document["checks"]:
        lines.setdefault(line["about"], []).append(line)
    return lines, code, document["level"]


def levels(lines):
    return {about: found[0]["level"] for about, found in lines.items()}


def test_a_house_in_order_is_ok_and_says_so():
    make_worker(queues={"default": 4}, types=["a.type"], started_at=ago(3600))
    invariants.keep(invariants.examine(margin=0))
    lines, code, level = checked()

    assert (code, level) == (0, "ok")
    assert set(levels(lines).values()) == {"ok"}
    assert lines["nothing_lost"][0]["says"].startswith("No accepted job is lost. It holds (1")
    assert lines["configuration"][0]["profile"] == "embedded"


def test_without_a_worker_it_wants_attention_and_is_not_broken():
    lines, code, level = checked()

    assert (code, level) == (0, "attention")
    wanting = {about for about, found in levels(lines).items() if found == "attention"}
    assert wanting == {"workers", "leader", "last_look"}
    assert lines["workers"][0]["advice"] == "Start one with manage.py runworker."


def test_a_broken_promise_is_told_with_its_job_and_what_to_do():
    id_ = new_id()
    enqueue(id_)
    execute("DELETE FROM turno.job_state_changes")
    lines, code, level = checked()

    assert (code, level) == (1, "broken")
    [broken] = lines["truth"]
    assert (broken["invariant"], broken["examples"], broken["count"]) == ("history_is_whole", [str(id_)], 1)
    assert str(id_) in broken["says"]
    assert broken["advice"].endswith("timeline.")


def test_what_waits_for_a_person_wants_attention():
    make_letter(make_job("Failed"))
    execute(
        "INSERT INTO turno.recurring_jobs (id, name, type, payload, cron, error)"
        " VALUES (gen_random_uuid(), 'nightly', 'a.type', '{}', 'x', 'no cron')"
    )
    execute("INSERT INTO turno.pauses (scope, value) VALUES ('type', 'a.type')")
    lines, _code, _level = checked()

    assert lines["dead_letters"][0]["says"] == "1 dead letter waits for a person."
    assert lines["schedules"][0]["says"] == "1 recurring job can't fire: nightly."
    assert lines["paused"][0]["says"].endswith(": type a.type.")


FACTS = {
    "servers": ["a:1"], "down": 1, "name": "w", "jobs": 1, "queue": "q", "waiting": 2, "type": "a.type", "open_for": 9,
    "lost_count": 2, "job": "j", "module": "m", "error": "e", "worker": "w", "failing": 0, "last_error": None,
    "part": "broker", "seen_by": ["w"], "added": 3, "error_type": None, "message": "no", "since_for": 60,
    "scope": "queue", "value": "q",
}  # fmt: skip


@pytest.mark.parametrize("kind", list(Kind))
def test_each_kind_of_concern_has_a_sentence_and_an_advice(kind):
    line = told(Concern(kind, "x", FACTS | ({"servers": 3} if kind is Kind.REDIS_AWAY else {})))
    assert line.level == "attention"
    assert line.says.endswith(".")
    assert line.advice
    assert "%" not in line.says + line.advice


def test_a_clock_that_is_off_is_told_and_breaks_nothing(monkeypatch):
    monkeypatch.setattr("workers.doctor.looks.time.time", lambda: 0.0)
    lines, _code, _level = checked()

    assert lines["clock"][0]["level"] == "attention"
    assert "ahead of this machine's" in lines["clock"][0]["says"]


def test_a_server_that_is_away_is_told():
    with overridden(redis={"urls": ("redis://127.0.0.1:1/0",)}):
        lines, code, _level = checked()
    health._probes.pop("redis")  # as it was before the check

    assert code == 0
    assert lines["redis"][0]["level"] == "attention"
    assert "127.0.0.1:1" in lines["redis"][0]["says"]


def test_missing_migrations_end_the_check():
    execute(
        "DELETE FROM public.django_migrations WHERE app = 'jobs'"
        " AND name = (SELECT max(name) FROM public.django_migrations WHERE app = 'jobs')"
    )
    lines, code, _level = checked()

    assert code == 1
    assert [name.partition(".")[0] for name in lines["migrations"][0]["missing"]] == ["jobs"]
    assert "workers" not in lines


def test_tables_of_a_newer_version_want_attention():
    execute("INSERT INTO public.django_migrations (app, name, applied) VALUES ('jobs', '9999_later', now())")
    lines, code, _level = checked()

    assert (code, lines["migrations"][0]["level"], lines["migrations"][0]["newer"]) == (0, "attention", ["9999_later"])


def test_a_database_that_breaks_off_in_the_middle_is_a_line_and_no_traceback(monkeypatch):
    def broken():
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_catalog.no_such_function()")

    monkeypatch.setattr("workers.doctor.looks.queries.workers", broken)
    monkeypatch.setattr("workers.doctor.looks.connections.close_all", lambda: None)
    monkeypatch.setattr("workers.doctor.BESIDE", doctor.BESIDE[2:3])
    lines, code, _level = checked()

    assert code == 1
    assert "no_such_function" in lines["workers"][0]["says"]


def test_the_command_prints_a_line_a_look_and_ends_with_the_code(capsys):
    make_job("Scheduled", run_at=ahead(60))  # without a history
    with pytest.raises(SystemExit) as ended:
        call_command("turno", "check")

    said = capsys.readouterr().out
    assert ended.value.code == 1
    assert "[ok]        The configuration is valid. Turno works with PostgreSQL." in said
    assert "[broken]    A job's history begins with its creation" in said


@pytest.mark.parametrize(
    ("variable", "value", "says"),
    [
        ("TURNO_DATABASE__URL", "postgresql://turno@127.0.0.1:1/turno", "The database does not answer"),
        ("TURNO_WORKER__QUEUES", "default", "TURNO_WORKER__QUEUES: 'default': expected"),
    ],
)
def test_a_bad_environment_is_told_in_words(variable, value, says, tmp_path):
    env = os.environ | {variable: value, "TURNO_WEB__SECRET_KEY": "k" * 50, "TURNO_LANG": "en"}
    (tmp_path / "turno.toml").touch()
    asked = subprocess.run(
        [sys.executable, str(PROJECT / "manage.py"), "turno", "check"],
        env=env | {"TURNO_CONFIG": str(tmp_path / "turno.toml")}, capture_output=True, text=True, timeout=120,
        check=False,
    )  # fmt: skip

    assert asked.returncode == 1
    assert says in asked.stdout + asked.stderr
    assert "Traceback" not in asked.stdout + asked.stderr
