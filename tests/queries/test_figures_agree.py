"""The same jobs are the same number on every screen: figures, tabs, lists, queues, what an act would meet."""

from datetime import timedelta

import pytest

from jobs import bulk, queries
from jobs.ids import new_id
from jobs.queries import JobFilter, LetterFilter
from jobs.states import State
from tests.transitions import rows
from tests.transitions.rows import make_letter

pytestmark = pytest.mark.django_db
MADE = {
    State.ENQUEUED: 5, State.PROCESSING: 4, State.SCHEDULED: 3, State.SUCCEEDED: 7, State.FAILED: 6, State.CANCELLED: 2,
}  # fmt: skip
PARKED = 4


@pytest.fixture(autouse=True)
def _house(monkeypatch):
    monkeypatch.setattr("jobs.queries.counts.TIME", 20.0)  # a busy machine counts as well as an idle one
    for state, count in MADE.items():
        for _ in range(count):
            made = rows.make_job(state, id=new_id())
            if state is State.FAILED:
                make_letter(made, id=new_id(), fingerprint="ab")
    for number in range(PARKED):
        rows.make_job(State.SCHEDULED, id=new_id(), waiting_for="concurrency_key", gate=f"k{number}")


def soon():
    """A cut-off after the rows, which were made at this transaction's now()."""
    return queries.now() + timedelta(seconds=1)


def expected(state):
    return MADE[state] + (PARKED if state is State.ENQUEUED else 0)


def test_the_figures_are_the_tabs_and_the_tabs_are_the_lists():
    stats, tabs = queries.stats(), queries.tabs(JobFilter())
    figures = {State.ENQUEUED: stats.waiting, State.PROCESSING: stats.processing, State.SCHEDULED: stats.timed}
    for state in State:
        listed = queries.job_list(JobFilter(shown=str(state)), seconds=20).ids
        assert (tabs[state].number, tabs[state].estimated, len(listed)) == (expected(state), False, expected(state))
        assert figures.get(state, expected(state)) == expected(state)
    assert sum(tab.number for tab in tabs.values()) == queries.count(JobFilter()).number == sum(MADE.values()) + PARKED


def test_a_queue_is_as_deep_as_its_part_of_the_list():
    [depth] = [one for one in queries.depths(queries.board({})) if one.queue == "default"]
    listed = queries.job_list(JobFilter(shown="Enqueued", queue="default"), seconds=20).ids
    assert depth.waiting + depth.parked == len(listed) == queries.stats().waiting


def test_the_dead_letters_are_as_many_as_their_tab_their_causes_and_what_a_requeue_would_meet():
    page = queries.causes()
    met = bulk.preview("requeue", "letters", filter=LetterFilter(), before=soon())
    assert {queries.stats().dead_letters, queries.letter_counts().pending, page.letters, met.count} == {6}
    assert page.items[0].count == len(queries.letters("ab").items) == 6


@pytest.mark.parametrize(("act", "states"), [
    ("cancel", (State.ENQUEUED, State.PROCESSING, State.SCHEDULED)), ("requeue", (State.FAILED, State.CANCELLED)),
    ("delete", (State.SUCCEEDED, State.FAILED, State.CANCELLED)), ("run_now", (State.SCHEDULED,)),
])  # fmt: skip
def test_an_act_over_many_says_the_numbers_of_the_tabs(act, states):
    met = bulk.preview(act, filter=JobFilter(), before=soon())
    assert met.by_state == {state: expected(state) for state in states}
    ids = [id_ for state in State for id_ in queries.job_list(JobFilter(shown=str(state)), seconds=20).ids]
    assert bulk.preview(act, ids=ids).by_state == met.by_state
