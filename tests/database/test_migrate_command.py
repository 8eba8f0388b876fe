"""`manage.py migrate`: one instance at a time, a clear sentence for what is in its way, nothing half done."""

import os
import signal
import socket
import subprocess
import sys
import threading

import psycopg
import pytest

from jobs.management.commands.migrate import ADVISORY_LOCK
from tests.database.scratch import (
    ADVISORY_LOCKS,
    PATIENCE,
    PROJECT,
    environment,
    eventually,
    finished,
    line_with,
    server,
    started,
)

pytestmark = pytest.mark.crash  # each test starts processes of its own, some kill them

WAITING = "Another instance is migrating"
# The backend that holds the advisory lock and waits for the one that the blocker keeps; 0 when there is none.
HANGING = """
    SELECT coalesce(max(l.pid), 0) FROM pg_locks l JOIN pg_stat_activity a USING (pid)
    WHERE l.locktype = 'advisory' AND l.granted AND a.wait_event_type = 'Lock' AND a.datname = current_database()
"""


@pytest.fixture
def watcher(scratch):
    """A connection beside the commands, that sees what they hold and wait for."""
    with psycopg.connect(scratch, autocommit=True) as connection:
        yield connection


@pytest.fixture
def blocker(scratch):
    """A transaction that made the schema and did not end: who migrates waits for it, and holds the lock meanwhile."""
    with psycopg.connect(scratch) as connection:
        connection.execute("CREATE SCHEMA turno")
        yield connection


def one(connection: psycopg.Connection, query: str) -> int:
    return connection.execute(query).fetchone()[0]


def tables(connection: psycopg.Connection) -> int:
    return one(connection, "SELECT count(*) FROM pg_tables WHERE schemaname = 'turno'")


def test_of_two_that_start_at_once_one_migrates_and_the_other_waits_and_both_succeed(scratch, blocker, watcher):
    arguments = ("migrate", "--lock-timeout", "60")
    with started(scratch, *arguments) as first, started(scratch, *arguments) as second:
        waiting = line_with(WAITING, first, second)
        assert one(watcher, ADVISORY_LOCKS) == 1
        blocker.rollback()
        outputs = {child: child.communicate(timeout=PATIENCE)[0] for child in (first, second)}

    assert [first.returncode, second.returncode] == [0, 0]
    migrating = second if waiting is first else first
    assert "Applying jobs.0002_tables... OK" in outputs[migrating]
    assert WAITING not in outputs[migrating]
    assert "No migrations to apply" in outputs[waiting]
    assert WAITING not in outputs[waiting]  # said once, in the line that was read
    assert one(watcher, ADVISORY_LOCKS) == 0


def test_a_killed_instance_that_hangs_behind_a_lock_hands_over_to_the_one_that_waits(scratch, blocker, watcher):
    with started(scratch, "migrate", "--lock-timeout", "60") as holder:
        eventually(lambda: one(watcher, HANGING), holder)
        dead = one(watcher, HANGING)
        with started(scratch, "migrate", "--lock-timeout", "60") as heir:
            line_with(WAITING, heir)
            os.kill(holder.pid, signal.SIGKILL)
            eventually(lambda: one(watcher, HANGING) not in {0, dead}, heir)
            blocker.rollback()
            output = heir.communicate(timeout=PATIENCE)[0]

    assert heir.returncode == 0, output
    assert tables(watcher) > 10


def test_behind_a_busy_lock_it_gives_up_with_a_sentence_and_can_be_repeated(scratch, blocker, watcher):
    refused = finished(scratch, "migrate", "--lock-timeout", "300ms")

    assert refused.returncode == 1
    assert "stayed locked by somebody else" in refused.stderr
    assert "Traceback" not in refused.stderr
    assert one(watcher, ADVISORY_LOCKS) == 0

    blocker.rollback()
    repeated = finished(scratch, "migrate")
    assert repeated.returncode == 0, repeated.stderr
    assert tables(watcher) > 10


def test_a_database_that_goes_away_while_it_migrates_is_one_sentence(scratch, blocker, watcher):
    with started(scratch, "migrate", "--lock-timeout", "60") as child:
        eventually(lambda: one(watcher, HANGING), child)
        watcher.execute("SELECT pg_terminate_backend(%s)", [one(watcher, HANGING)])
        output = child.communicate(timeout=PATIENCE)[0]

    assert child.returncode == 1
    assert "CommandError: The database went away while migrating" in output
    assert "Traceback" not in output


def test_a_database_that_is_away_is_one_sentence_without_a_traceback():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound and not listening: nobody answers there
        port = taken.getsockname()[1]
        refused = finished(f"postgresql://turno:s3cr3t@127.0.0.1:{port}/turno", "migrate")

    assert refused.returncode == 1
    assert refused.stderr.startswith("CommandError: The database does not answer: ")
    assert len(refused.stderr.splitlines()) == 1
    assert "s3cr3t" not in refused.stderr + refused.stdout


def test_a_database_that_does_not_exist_is_one_sentence():
    refused = finished(server("turno_there_is_none"), "migrate")

    assert refused.returncode == 1
    assert '"turno_there_is_none" does not exist' in refused.stderr
    assert len(refused.stderr.splitlines()) == 1


def test_with_wait_it_keeps_trying_until_the_database_answers(scratch):
    target = psycopg.conninfo.conninfo_to_dict(scratch)
    if target["host"].startswith("/"):
        address: tuple[str, int] | str = f"{target['host']}/.s.PGSQL.{target['port']}"
    else:
        address = (target["host"], int(target["port"]))
    with socket.socket() as door:
        door.bind(("127.0.0.1", 0))
        url = f"postgresql://turno@127.0.0.1:{door.getsockname()[1]}/{target['dbname']}"
        url = url.replace("turno@", f"{target['user']}:{target.get('password', '')}@")
        with started(url, "migrate", "--wait", "60") as child:
            line_with("Trying again for 60 s", child)
            door.listen()
            threading.Thread(target=forward, args=(door, address), daemon=True).start()
            output = child.communicate(timeout=PATIENCE)[0]

    assert child.returncode == 0, output
    assert "Applying jobs.0002_tables... OK" in output


def forward(door: socket.socket, address: tuple[str, int] | str) -> None:
    """Carry each connection that comes through the door to the server, until the door is shut."""
    while True:
        try:
            near, _peer = door.accept()
        except OSError:
            return
        family = socket.AF_UNIX if isinstance(address, str) else socket.AF_INET
        far = socket.socket(family)
        far.connect(address)
        for source, sink in ((near, far), (far, near)):
            threading.Thread(target=copy, args=(source, sink), daemon=True).start()


def copy(source: socket.socket, sink: socket.socket) -> None:
    try:
        while data := source.recv(65536):
            sink.sendall(data)
    except OSError:
        pass
    finally:
        source.close()
        sink.close()


def test_a_server_that_is_too_old_is_refused_with_both_versions(scratch):
    # No old server is at hand: the lowest version that is accepted is raised above this one's.
    script = (
        "from django.db.backends.postgresql.features import DatabaseFeatures\n"
        "DatabaseFeatures.minimum_database_version = (99,)\n"
        "import sys, runpy\n"
        "sys.argv = ['manage.py', 'migrate']\n"
        "runpy.run_path('manage.py', run_name='__main__')\n"
    )
    refused = subprocess.run(
        [sys.executable, "-c", script],
        env=environment(scratch),
        cwd=PROJECT,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )

    assert refused.returncode == 1
    assert refused.stderr.startswith("CommandError: PostgreSQL 99 or newer is needed; this server is version ")
    assert len(refused.stderr.splitlines()) == 1


def test_a_role_that_may_create_nothing_is_one_sentence(scratch):
    name = f"turno_guest_{os.getpid()}"
    with psycopg.connect(scratch, autocommit=True) as admin:
        admin.execute(f"CREATE ROLE {name} LOGIN PASSWORD 'guest'")
        try:
            place = scratch.split("@", 1)[1]  # all but the login, with or without a password
            url = f"postgresql://{name}:guest@{place}"
            refused = finished(url, "migrate")
        finally:
            admin.execute(f"DROP ROLE {name}")

    assert refused.returncode == 1
    assert f"The role {name} may not create or change tables here" in refused.stderr
    assert "Traceback" not in refused.stderr


def test_tables_of_django_land_in_public_also_for_a_role_named_like_our_schema(scratch, watcher):
    assert finished(scratch, "migrate").returncode == 0

    ours = watcher.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'turno'").fetchall()
    assert not [name for (name,) in ours if name.startswith(("django_", "auth_"))]
    assert one(watcher, "SELECT count(*) FROM pg_tables WHERE schemaname = 'public'") > 5


def test_looking_at_the_plan_waits_for_nobody(scratch, watcher):
    watcher.execute("SELECT pg_advisory_lock(%s)", [ADVISORY_LOCK])

    seen = finished(scratch, "migrate", "--plan")
    unapplied = finished(scratch, "migrate", "--check")

    assert seen.returncode == 0
    assert "jobs.0002_tables" in seen.stdout
    assert unapplied.returncode == 1
    assert WAITING not in seen.stdout + unapplied.stdout
