"""The edge matrix of what parks at pauses and breakers, of priorities, and of dead letters: as `test_edges`."""

from collections.abc import Callable
from uuid import UUID

import pytest

from jobs import transitions
from jobs.outcomes import Verdict
from jobs.states import Reason, State
from tests.transitions import COMMITTED
from tests.transitions.edges import Answer, Cases, Fence, Verb
from tests.transitions.legal import Change
from tests.transitions.rows import execute, select
from tests.transitions.test_edges import assert_changed, assert_untouched, played

pytestmark = COMMITTED
TOKENS = (Fence.RIGHT, Fence.TOKEN)
WAITING = ("scheduled", "due", "parked", "of an unknown type", "enqueued")
PRIORITY = 7


def _parking(verb: Callable[..., set[UUID]], gate: str, **options: object) -> Verb:
    """Parks what a message named, behind a gate that is closed for the type of all."""

    def call(cases: Cases, using: str) -> Answer:
        execute(gate)
        try:
            moved = verb([(case.made.id, case.token) for case in cases], **options, using=using)
        finally:
            execute("DELETE FROM turno.pauses")
            execute("DELETE FROM turno.circuits")
        return dict.fromkeys(moved, State.SCHEDULED)

    return Verb(call, TOKENS)


def _reprioritise(cases: Cases, using: str) -> Answer:
    verdicts = transitions.reprioritise([case.made.id for case in cases], PRIORITY, using=using)
    return {verdict.id: verdict.state for verdict in verdicts if verdict.applied}


def _of_letters(verb: Callable[..., list[Verdict]]) -> Verb:
    def call(cases: Cases, using: str) -> Answer:
        of = {row["id"]: row["job_id"] for row in select("SELECT id, job_id FROM turno.dead_letters")}
        unknown = [case.made.id for case in cases if case.situation == "missing"]
        verdicts = verb([*of, *unknown], actor="rui", using=using)
        assert [verdict.problem for verdict in verdicts if verdict.id in unknown] == ["not_found"]
        return {of[verdict.id]: verdict.state for verdict in verdicts if verdict.applied}

    return Verb(call)


PAUSED = "INSERT INTO turno.pauses (scope, value) VALUES ('type', 'test.echo')"
BROKEN = """
INSERT INTO turno.circuits (type, state, opened_at, retry_at)
VALUES ('test.echo', 'open', now(), now() + interval '1 hour')
"""
VERBS = {
    "park_paused": _parking(transitions.park_paused, PAUSED),
    "park_circuit": _parking(transitions.park_circuit, BROKEN, types=["test.echo"]),
    "reprioritise": Verb(_reprioritise),
    "requeue_letters": _of_letters(transitions.requeue_letters),
    "discard": _of_letters(transitions.discard),
}
LEGAL = {
    ("park_paused", "enqueued"): Change(State.SCHEDULED, Reason.PARKED),
    ("park_circuit", "enqueued"): Change(State.SCHEDULED, Reason.CIRCUIT_OPEN),
    ("requeue_letters", "failed"): Change(State.ENQUEUED, Reason.REQUEUED),
    ("discard", "failed"): Change(),
} | {("reprioritise", waiting): Change() for waiting in WAITING}


@pytest.mark.parametrize("verb", VERBS)
def test_a_verb_makes_its_legal_changes_and_no_other(verb, using, ear, subtests):
    cases, before, after, answer = played(verb, VERBS[verb], using, ear)
    for case in cases:
        with subtests.test(str(case)):
            change = LEGAL.get((verb, case.situation)) if case.fence is Fence.RIGHT else None
            if change is None:
                assert_untouched(case, before, after)
                assert answer.get(case.made.id) is None
            elif change.to is not None:
                assert_changed(case, before, after, change, answer)
            elif verb == "reprioritise":
                assert after.jobs[case.made.id] == before.jobs[case.made.id] | {"priority": PRIORITY}
                assert (case.made.queue in after.woken) is (case.situation == "enqueued")
                assert answer[case.made.id] == before.jobs[case.made.id]["state"]
            else:
                assert after.jobs[case.made.id] == before.jobs[case.made.id]
                assert [letter["resolved_how"] for letter in after.letters[case.made.id]] == ["discarded"]
    assert all(after.history[case.made.id] == [] for case in cases if (verb, case.situation) not in LEGAL)
