"""Dead letters by cause: counts, ages, hours, examples, filters, orders, tabs and bounds."""

import sys
from itertools import count

import pytest

from jobs.queries import Cause, LetterFilter, causes, letter_counts
from tests.queries.house import letter
from tests.transitions import rows

pytestmark = pytest.mark.django_db


def by_cause(**asked) -> dict[str, Cause]:
    return {cause.fingerprint: cause for cause in causes(**asked).items}


def test_without_letters_there_are_no_causes():
    found = causes()
    assert (found.items, found.causes, found.letters, found.partial, found.more) == ([], 0, 0, False, False)


def test_a_cause_counts_its_letters_and_shows_the_newest():
    letter("f", age=3 * 3600, queue="a")
    letter("f", age=7200, queue="b")
    newest = letter(
        "f", age=100, queue="a", type="integration.sync", error_type="TimeoutError",
        error_message="No answer of 'crm' in 30 s", stack="File x.py, line 3", failure_kind="timeout",
    )  # fmt: skip
    found = causes()
    assert (found.causes, found.letters, found.partial) == (1, 3, False)
    (cause,) = found.items
    assert (cause.count, cause.letter_id, cause.type, cause.failure_kind) == (3, newest, "integration.sync", "timeout")
    assert (cause.error_type, cause.error_message) == ("TimeoutError", "No answer of 'crm' in 30 s")
    assert (cause.stack, cause.pattern) == ("File x.py, line 3", "No answer of <text> in <n> s")
    assert cause.queues == ["a", "b"]
    assert 100 <= cause.last_ago < 120
    assert 10800 <= cause.first_ago < 10820
    assert cause.first_at < cause.last_at


def test_the_hours_of_a_day_are_counted_the_oldest_first():
    for age in (10, 3599 - 10, 3600 + 10, 23 * 3600 + 10, 24 * 3600 + 10, 40 * 86400):
        letter("f", age=age)
    (cause,) = causes().items
    assert cause.count == 6
    assert len(cause.hourly) == 24
    assert (cause.hourly[-1], cause.hourly[-2], cause.hourly[0], sum(cause.hourly)) == (2, 1, 1, 4)


def test_causes_are_ordered_by_their_letters_or_by_the_newest_of_them():
    for age in (500, 600, 700):
        letter("many", age=age)
    letter("new", age=1)
    letter("old", age=90)
    assert [cause.fingerprint for cause in causes().items] == ["many", "new", "old"]
    assert [cause.fingerprint for cause in causes(sort="newest").items] == ["new", "old", "many"]


def test_pages_of_causes_follow_one_another():
    for n in range(5):
        letter(f"f{n}", age=100 + n)
    pages = [causes(size=2, offset=offset) for offset in (0, 2, 4, 6)]
    assert [[cause.fingerprint for cause in page.items] for page in pages] == [["f0", "f1"], ["f2", "f3"], ["f4"], []]
    assert [page.more for page in pages] == [True, True, False, False]
    assert {page.causes for page in pages} == {5}


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        (LetterFilter(), {"f": 3, "g": 1}),
        (LetterFilter(type="t.one"), {"f": 1, "g": 1}),
        (LetterFilter(queue="q2"), {"f": 1}),
        (LetterFilter(search="ALPHA"), {"f": 2}),
        (LetterFilter(search="valueerr"), {"g": 1}),
        (LetterFilter(search="t.two"), {"f": 2}),
        (LetterFilter(search="100%"), {"f": 1}),
        (LetterFilter(search="%"), {"f": 1}),
        (LetterFilter(search="_"), {}),
        (LetterFilter(search="\\"), {"g": 1}),
        (LetterFilter(search="';--"), {}),
        (LetterFilter(search=""), {"f": 3, "g": 1}),
        (LetterFilter(fingerprint="g"), {"g": 1}),
        (LetterFilter(fingerprint="none"), {}),
        (LetterFilter(type="t.two", search="alpha"), {"f": 1}),
    ],
    ids=str,
)
def test_a_filter_keeps_letters_and_each_cause_counts_those(asked, expected):
    letter("f", type="t.one", error_message="alpha at 100%")
    letter("f", type="t.two", error_message="Alpha", queue="q2")
    letter("f", type="t.two", error_message=None)
    letter("g", type="t.one", error_type="ValueError", error_message="C:\\x")
    page = causes(asked)
    assert {cause.fingerprint: cause.count for cause in page.items} == expected
    assert (page.causes, page.letters) == (len(expected), sum(expected.values()))


def test_the_example_and_the_ages_are_of_the_letters_that_were_kept():
    kept = letter("f", type="t.one", age=500, error_message="kept")
    letter("f", type="t.two", age=5, error_message="other")
    (cause,) = causes(LetterFilter(type="t.one")).items
    assert (cause.letter_id, cause.error_message, sum(cause.hourly)) == (kept, "kept", 1)
    assert cause.last_ago >= 500


def test_each_tab_has_its_own_letters():
    letter("p")
    for _ in range(3):
        letter("r", resolved_how="requeued")
    letter("p", resolved_how="requeued")
    letter("d", resolved_how="discarded")
    assert {name: c.count for name, c in by_cause().items()} == {"p": 1}
    assert {name: c.count for name, c in by_cause(tab="requeued").items()} == {"r": 3, "p": 1}
    assert {name: c.count for name, c in by_cause(tab="discarded").items()} == {"d": 1}
    found = letter_counts()
    assert (found.pending, found.requeued, found.discarded, found.estimated) == (1, 4, 1, frozenset())


@pytest.mark.parametrize("asked", [{"tab": "x"}, {"sort": "x"}, {"tab": "pending; DROP TABLE"}])
def test_unknown_tabs_and_orders_are_refused(asked):
    with pytest.raises(KeyError):
        causes(**asked)


def test_a_letter_without_error_and_fingerprint_is_a_cause_too():
    letter("", error_type=None, error_message=None, stack=None)
    (cause,) = causes().items
    assert (cause.fingerprint, cause.error_type, cause.pattern) == ("", None, "")


def test_hostile_messages_come_through_as_they_are():
    text = "<img src=x onerror=alert(1)> %s %(x)s {tab} \u202e \\ ' \" \U0001f600\n" + "x" * 2000
    letter("<b>", error_message=text, error_type=text[:50])
    (cause,) = causes(LetterFilter(search="{tab}")).items
    assert (cause.fingerprint, cause.error_message) == ("<b>", text)


def test_letters_of_one_instant_have_one_example():
    same = rows.Sql("date_trunc('hour', now())")
    for _ in range(3):
        rows.make_letter(rows.make_job("Failed"), fingerprint="f", created_at=same)
    (cause,) = causes().items
    assert (cause.count, cause.first_at) == (3, cause.last_at)


@pytest.mark.parametrize(("bound", "value"), [("MOST_LETTERS", 4), ("MOST_CAUSES", 2)])
def test_what_lies_beyond_the_bounds_is_said(bound, value, monkeypatch):
    for n in range(3):
        letter(f"f{n}")
        letter(f"f{n}")
    assert not causes().partial
    monkeypatch.setattr(sys.modules["jobs.queries.causes"], bound, value)
    found = causes()
    assert found.partial
    assert 0 < found.letters <= 6


def test_just_as_many_as_the_bounds_is_all(monkeypatch):
    for n in range(3):
        letter(f"f{n}")
    monkeypatch.setattr(sys.modules["jobs.queries.causes"], "MOST_LETTERS", 3)
    monkeypatch.setattr(sys.modules["jobs.queries.causes"], "MOST_CAUSES", 3)
    found = causes()
    assert (found.partial, found.causes, found.letters) == (False, 3, 3)


def test_counts_beyond_the_bound_are_estimates(monkeypatch):
    monkeypatch.setattr(sys.modules["jobs.queries.causes"], "COUNTED", 3)
    for how, letters in ((None, 5), ("requeued", 6), ("discarded", 2)):
        for _ in range(letters):
            letter(**({"resolved_how": how} if how else {}))
    rows.execute("ANALYZE turno.dead_letters")
    found = letter_counts()
    assert (found.pending, found.requeued, found.discarded) == (5, 6, 2)
    assert found.estimated == {"pending", "requeued"}


def test_two_large_tabs_share_an_estimate_and_never_fall_below_what_was_counted(monkeypatch):
    monkeypatch.setattr(sys.modules["jobs.queries.causes"], "COUNTED", 3)
    entries = count(0, 0)
    monkeypatch.setattr(sys.modules["jobs.queries.causes"], "index_entries", lambda name: next(entries))
    for how in ("requeued", "discarded"):
        for _ in range(5):
            letter(resolved_how=how)
    found = letter_counts()
    assert (found.requeued, found.discarded) == (4, 4)
