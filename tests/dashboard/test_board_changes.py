"""What a browser is sent of the board after the page was loaded: what changed, and nothing that comes or goes."""

import re
from dataclasses import replace
from datetime import timedelta

import pytest
from django.utils import translation
from hypothesis import given
from hypothesis import strategies as st

from dashboard import board as shift
from dashboard.board import layout
from dashboard.board.seen import MOST_ROWS, ROW, Seen, Tags, parse, short
from tests.dashboard.boards import board, depth, running, worker

BOTH = pytest.mark.parametrize("density", [shift.DETAIL, shift.MOSAIC])
TARGET = re.compile(r'<hx-partial hx-target="#([\w-]+)" hx-swap="(\w+)">')


@pytest.fixture(autouse=True)
def english():
    with translation.override("en"):
        yield


def loaded(now, density, depths=()):
    """What the browser has after loading the page, as it will send it."""
    picture = shift.whole(now, list(depths), density)
    return picture.seen(picture.heads()).header()


def told(now, density, has, *, depths=(), gone=()):
    """The answer to a browser that has `has`: targets, HTML, and what it has then."""
    html, after = shift.changes(now, list(depths), density, parse(has), lambda: gone)
    return [target for target, _ in TARGET.findall(html)], html, after


def later(now, seconds, *workers):
    """The same board that much later: every clock has gone on."""
    moved = [
        replace(one, seen_ago=one.seen_ago + seconds, running=[aged(job, seconds) for job in one.running])
        for one in workers or now.workers
    ]
    return replace(now, as_of=now.as_of + timedelta(seconds=seconds), workers=moved)


def changed(job, **more):
    """The job with other values."""
    return job._replace(**more)


def aged(job, seconds):
    left = None if job.returns_in is None else job.returns_in - seconds
    return changed(job, elapsed=job.elapsed + seconds, returns_in=left)


@BOTH
def test_clocks_that_ran_on_are_no_change(density):
    now = board(worker("a", jobs=[running()]), worker("b", jobs=[running(returns_in=30.0)], state="Silent"))
    has = loaded(now, density, [depth(waiting=4, oldest_for=10.0)])
    targets, html, after = told(later(now, 6), density, has, depths=[depth(waiting=4, oldest_for=16.0)])
    assert (targets, html, after) == ([], "", has)


@BOTH
def test_only_the_row_that_changed_is_sent(density):
    still, moving = worker("a", jobs=[running()]), worker("b", jobs=[running(progress=20)])
    now = board(still, moving)
    has = loaded(now, density)
    moved = later(now, 1, still, replace(moving, running=[changed(moving.running[0], progress=40)]))
    targets, html, after = told(moved, density, has)
    assert targets == [f"w-{moving.id}"]
    assert str(still.id) not in html
    assert told(later(moved, 2), density, after)[0] == []


def test_a_mosaic_s_row_is_not_sent_before_its_cell_moves_by_a_step():
    one = worker("a", jobs=[running(progress=61)])
    has = loaded(board(one), shift.MOSAIC)
    same = replace(one, running=[changed(one.running[0], progress=69)])
    assert told(board(same), shift.MOSAIC, has)[0] == []


def test_a_new_stage_in_the_mosaic_sends_the_words_alone():
    one = worker("a", jobs=[running(stage="Linha 1")])
    has = loaded(board(one), shift.MOSAIC)
    targets, html, _ = told(board(replace(one, running=[changed(one.running[0], stage="Linha 2")])), shift.MOSAIC, has)
    assert targets == [f"m-{one.id}"]
    assert "Linha 2" in html


def test_a_heartbeat_in_detail_sends_the_words_alone():
    one = worker("a", jobs=[running()], seen_ago=9.0)
    has = loaded(board(one), shift.DETAIL)
    assert told(board(replace(one, seen_ago=0.0)), shift.DETAIL, has)[0] == [f"m-{one.id}"]


@BOTH
def test_a_worker_that_came_is_offered_and_not_shown(density):
    one, two, three = worker("a"), worker("b"), worker("c", {"files": 9})
    has = loaded(board(one), density)
    targets, html, after = told(board(one, two, three), density, has)
    assert "2 new workers · Show" in html
    assert f"w-{two.id}" not in targets
    assert str(three.id) not in html
    assert told(board(one, two, three), density, after)[0] == []


@BOTH
def test_a_worker_that_went_keeps_its_row_and_says_so(density, make_gone):
    one, two = worker("a"), worker("b", jobs=[running(queue="default")])
    has = loaded(board(one, two), density)
    targets, html, after = told(board(one), density, has, gone=[make_gone(two, "Offline")])
    assert f"w-{two.id}" in targets
    assert "1 worker left · Show" in html
    assert "stopped" in html
    assert len(parse(after).rows) == 2
    assert told(board(one), density, after, gone=[make_gone(two, "Offline")])[0] == []


@BOTH
def test_a_lost_worker_stays_lost_after_its_job_has_returned(density, make_gone):
    one = worker("a", jobs=[running(returns_in=1.0)], state="Silent")
    has = loaded(board(one), density)
    _, html, _ = told(board(), density, has, gone=[make_gone(one, "Silent")])
    assert "no heartbeat" in html
    assert "Montando" not in html


@BOTH
def test_a_worker_that_nobody_knows_any_more_leaves_its_row_as_it_is(density):
    one, two = worker("a"), worker("b")
    has = loaded(board(one, two), density)
    targets, html, after = told(board(one), density, has)
    assert f"w-{two.id}" not in targets
    assert "1 worker left" in html
    assert len(parse(after).rows) == 2


def test_a_board_whose_columns_are_gone_comes_anew_and_goes_on():
    one, two = worker("a", {"default": 2}), worker("b", {"files": 3})
    has = loaded(board(one, two), shift.DETAIL)
    targets, html, after = told(board(one), shift.DETAIL, has)  # nobody knows the other one any more
    assert "quadro-corpo" in targets
    assert str(two.id) not in html
    busier = replace(one, running=[running()])
    assert f"w-{one.id}" in told(board(busier), shift.DETAIL, after)[0]


@BOTH
def test_a_browser_that_distrusts_what_it_shows_gets_its_rows_and_no_others(density):
    one, two, three = worker("a"), worker("b"), worker("c")
    has = parse(loaded(board(one, two), density))
    html, after = shift.changes(board(one, three), [], density, has.distrusted(), lambda: ())
    assert f'id="w-{one.id}"' in html
    assert f'id="w-{three.id}"' not in html
    assert "1 new worker" in html
    assert len(parse(after).rows) == 2


def test_a_new_column_never_shifts_the_rows_that_are_shown():
    one = worker("a", {"default": 2})
    has = loaded(board(one), shift.DETAIL)
    busier = replace(one, running=[running(slot=2)])
    _, html, _ = told(board(busier, worker("b", {"critical": 3})), shift.DETAIL, has)
    assert html.count("<td") == 3  # two slots and the end


@BOTH
def test_the_first_workers_of_an_empty_board_just_come(density):
    has = loaded(board(), density)
    one = worker("a", jobs=[running()])
    targets, html, after = told(board(one), density, has)
    assert "quadro-corpo" in targets
    assert f'id="w-{one.id}"' in html
    assert told(board(one), density, after)[0] == []


@BOTH
def test_a_head_is_sent_when_its_figures_change_or_another_job_is_the_oldest(density):
    one = worker("a")
    has = loaded(board(one), density, [depth(waiting=4, oldest_for=42.0)])
    targets, _, _ = told(board(one), density, has, depths=[depth(waiting=4, oldest_for=3.0)])
    assert bool(targets) is (density == shift.DETAIL)
    assert not [target for target in targets if target.startswith("w-")]


@BOTH
def test_a_browser_that_says_nothing_gets_every_row(density):
    now = board(worker("a"), worker("b"))
    targets, _, _ = told(now, density, None)
    assert {f"w-{one.id}" for one in now.workers} <= set(targets)


@given(st.text(alphabet="abcXYZ019-_.é\n ", max_size=80))
def test_strange_headers_are_none_of_ours_and_break_nothing(header):
    seen = parse(header)
    assert seen is None or seen.header() == header


def test_what_travels_comes_back_as_it_was_and_fits_a_header():
    rows = {short(str(n), 5): Tags(short(f"c{n}", 5), short(f"m{n}", 3)) for n in range(MOST_ROWS)}
    seen = Seen("abcd", "efghi", rows)
    assert parse(seen.header()) == seen
    assert len(seen.header()) == 10 + ROW * MOST_ROWS < 8000


@pytest.fixture
def make_gone():
    def make(one, state):
        return layout.Row(replace(one, state=state, running=[]), replace(one, running=[]).seats(), gone=True)

    return make
