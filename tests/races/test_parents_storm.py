"""Continuations by hundreds: children whose parents end at that moment, and a storm by chance."""

from contextlib import suppress
from random import Random
from time import monotonic
from uuid import UUID

import pytest
from django.db import IntegrityError

from jobs import transitions
from jobs.states import State
from jobs.transitions import parents
from tests.races.test_parents import ENGINE, check
from tests.races.two import together
from tests.transitions import COMMITTED, rows
from tests.transitions.children import WORKER, child, end, running, states
from tests.transitions.edges import claimant
from tests.transitions.rows import select

pytestmark = [COMMITTED, pytest.mark.usefixtures("committed")]
WAITING = "SELECT id FROM turno.jobs WHERE waiting_for = 'parents'"
SECONDS = 3.0  # of storm


def nobody_was_forgotten() -> None:
    """Without a second chance: the sweep finds none of those that somebody has looked at."""
    assert transitions.open_parents(limit=1000).opened == 0


def test_of_hundreds_of_children_whose_parents_end_at_that_moment_none_is_left_behind():
    """One half in the order in which it happens, the other with two looks and two ends at once."""
    sires = [running() for _ in range(200)]
    sons: list[UUID] = []

    def enqueues(part):
        def go():
            for sire in part:
                sons.append(id_ := child(sire, using=ENGINE))
                check(id_)

        return go

    def ends(part):
        return lambda: [end(sire, using=ENGINE) for sire in part]

    together([enqueues(sires[::2]), enqueues(sires[1::2]), ends(sires[::2]), ends(sires[1::2])])
    assert states(sons) == {"Enqueued": 200}
    assert {len(rows.edges(id_)) for id_ in sons} == {2}
    nobody_was_forgotten()


def test_of_pairs_of_parents_that_end_at_once_each_child_is_opened_once():
    left, right = ([running(type=side) for _ in range(120)] for side in ("left", "right"))
    sons = [child(*pair) for pair in zip(left, right, strict=True)]
    check(*sons[:60])  # the others are looked at meanwhile

    def ends(part):
        return lambda: [end(*part[n : n + 5], using=ENGINE) for n in range(0, 120, 5)]

    together([ends(left), ends(right), lambda: check(*sons[60:]), lambda: check(*sons[60:])])
    assert states(sons) == {"Enqueued": 120}
    assert {len(rows.edges(id_)) for id_ in sons} == {2}
    nobody_was_forgotten()


def test_after_a_storm_every_child_is_where_its_parents_left_it():
    """Ends, cancels, requeues, looks, deletes and new children by chance, from many connections."""
    for _ in range(20):
        running()
    until = monotonic() + SECONDS

    def some(where, count):
        found = select(f"SELECT id FROM turno.jobs WHERE {where} ORDER BY random() LIMIT {count}", using=ENGINE)
        return [row["id"] for row in found]

    def enqueues(rng):
        if ids := some("true", rng.randint(1, 4)):
            try:
                id_ = child(*ids, policy=rng.choice(["cancel", "run"]), using=ENGINE)
            except (parents.UnknownParents, IntegrityError):  # deleted meanwhile
                return
            check(id_, *some("waiting_for = 'parents'", 2))

    def runs(rng):
        offer = [("default", n) for n in range(1, 6)]
        transitions.claim_next(offer, types=["test.echo"], **claimant() | {"worker_id": WORKER}, using=ENGINE)
        for id_ in some("state = 'Processing'", 3):
            with suppress(AssertionError):  # another thread was first
                end(id_, to=rng.choice([State.SUCCEEDED, State.SUCCEEDED, State.FAILED]), using=ENGINE)

    def people(rng):
        transitions.cancel(some("state IN ('Enqueued', 'Scheduled')", 1), using=ENGINE)
        transitions.requeue(some("state IN ('Failed', 'Cancelled')", 4), using=ENGINE)
        if rng.random() < 0.3:
            transitions.delete(some("finished_at IS NOT NULL", 2), using=ENGINE)

    def storm(act, seed):
        def go():
            rng = Random(seed)
            while monotonic() < until:
                act(rng)

        return go

    together([storm(act, n) for n, act in enumerate([enqueues, enqueues, runs, runs, people, people])])
    reasons = {row["reason"] for row in select("SELECT DISTINCT reason FROM turno.job_state_changes")}
    assert {"parent_failed", "gate_opened", "requeued", "cancelled", "parked"} <= reasons
    nobody_was_forgotten()
    free = select(
        f"{WAITING} AND NOT EXISTS (SELECT FROM turno.job_dependencies AS d JOIN turno.jobs AS p ON p.id = d.parent_id "
        "WHERE d.child_id = jobs.id AND p.finished_at IS NULL)"
    )
    doomed = select(
        f"{WAITING} AND EXISTS (SELECT FROM turno.job_dependencies AS d JOIN turno.jobs AS p ON p.id = d.parent_id "
        "WHERE d.child_id = jobs.id AND d.policy = 'cancel' AND p.state IN ('Failed', 'Cancelled'))"
    )
    assert (free, doomed) == ([], [])
