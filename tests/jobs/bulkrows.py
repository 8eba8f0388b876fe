"""Rows for acts over many, with ids as the product makes them."""

from datetime import datetime

from jobs.ids import new_id
from jobs.states import State
from tests.transitions import rows
from tests.transitions.rows import Sql, make_letter

# Ids as the product makes them, in the order of `n`: lists are walked by them.
ID = Sql(
    "(lpad(to_hex((extract(epoch FROM now()) * 1000)::bigint), 12, '0') || '7' || lpad(to_hex(n / 4096), 3, '0')"
    " || '8' || lpad(to_hex(n % 4096), 3, '0') || substr(md5(random()::text), 1, 12))::uuid"
)


EARLIEST = datetime.fromisoformat("0001-01-01T00:00:00+23:00")


def make_jobs(count, state, **columns):
    rows.make_jobs(count, state, id=ID, **columns)


def make_job(state, **columns):
    return rows.make_job(state, **{"id": new_id()} | columns)


def states(state):
    [row] = rows.select("SELECT count(*) AS n FROM turno.jobs WHERE state = %s", str(state))
    return row["n"]


def make_dead(count=1, **columns):
    made = [make_job(State.FAILED, **columns) for _ in range(count)]
    letters = [new_id() for _ in made]
    for job, letter in zip(made, letters, strict=True):
        make_letter(job, id=letter)
    return made, letters


def grow_old():
    rows.execute("UPDATE turno.bulk_runs SET beat_at = beat_at - interval '11 seconds'")


def counts(run):
    return run.done, run.applied, run.skipped
