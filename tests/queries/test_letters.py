"""The letters of one cause: pages, what the job was asked, who ran it, what became of it."""

import json
from uuid import UUID

import pytest

from jobs.queries import LetterCursor, LetterFilter, letters
from tests.queries.house import letter
from tests.transitions import rows

pytestmark = pytest.mark.django_db
HEX = "0" * 32


def attempt(job: rows.Made, ordinal: int, worker: str | None) -> None:
    rows.execute(
        "INSERT INTO turno.job_attempts (job_id, ordinal, attempt, counted, dispatch_id, worker_name, outcome,"
        " started_at, ended_at) VALUES (%s, %s, 1, true, gen_random_uuid(), %s, 'Failed', now(), now())",
        job.id, ordinal, worker,
    )  # fmt: skip


def test_a_cause_of_nobody_has_no_letters():
    letter("other")
    found = letters("f")
    assert (found.items, found.next_cursor) == ([], None)


def test_letters_come_newest_first_page_after_page():
    made = [letter("f", age=age) for age in (10, 20, 20, 30, 40)]
    letter("other", age=15)
    seen, cursor = [], None
    while True:
        page = letters("f", size=2, after=cursor)
        seen += [item.id for item in page.items]
        if page.next_cursor is None:
            break
        cursor = LetterCursor.parse(str(page.next_cursor))
        assert cursor == page.next_cursor
    assert sorted(seen) == sorted(made)
    assert (seen[0], seen[-2:]) == (made[0], made[-2:])


def test_a_new_letter_moves_no_page():
    first, second, third = (letter("f", age=age) for age in (10, 20, 30))
    page = letters("f", size=2)
    letter("f", age=1)
    assert [item.id for item in page.items] == [first, second]
    assert [item.id for item in letters("f", size=2, after=page.next_cursor).items] == [third]


def test_a_letter_says_what_was_asked_and_who_ran_it_last():
    made = rows.make_job("Failed", payload={"pagina": 4, "origem": "crm"}, type="integration.sync")
    attempt(made, 1, "worker-1")
    attempt(made, 2, "worker-2")
    letter("f", job=made, age=120, attempts=2, error_type="TimeoutError", error_message="no answer", type="x.y")
    (found,) = letters("f").items
    assert (found.job_id, found.worker, found.attempts) == (made.id, "worker-2", 2)
    assert sorted(found.preview.split()) == ["origem=crm", "pagina=4"]
    assert (found.error_type, found.message, found.type) == ("TimeoutError", "no answer", "x.y")
    assert 120 <= found.created_ago < 140
    assert (found.resolved_at, found.resolved_ago, found.resolved_how, found.resolved_by) == (None, None, None, None)


def test_a_letter_of_a_job_that_nobody_ran_has_no_worker():
    letter("f")
    assert letters("f").items[0].worker is None


@pytest.mark.parametrize(
    ("payload", "preview"),
    [
        ({}, None),
        ([], "[]"),
        (None, "null"),
        ("text", '"text"'),
        ({"a": None}, "a=null"),
        ({"a": {"b": [1, 2]}}, 'a={"b": [1, 2]}'),
        ({"a": "<script>"}, "a=<script>"),
        ({"a": 10**30}, f"a={10**30}"),
        ({"k" * 300: 1}, "k" * 160),
    ],
    ids=str,
)
def test_a_payload_of_any_shape_has_a_preview(payload, preview):
    made = rows.make_job("Failed")
    rows.execute("UPDATE turno.jobs SET payload = %s::jsonb WHERE id = %s", json.dumps(payload), made.id)
    letter("f", job=made)
    assert letters("f").items[0].preview == preview


def test_a_large_payload_has_a_short_preview():
    letter("f", job=rows.make_job("Failed", payload={f"key{n}": "x" * 1000 for n in range(200)}))
    assert len(letters("f").items[0].preview) <= 160


def test_a_resolved_letter_says_how_when_and_by_whom():
    letter("f", resolved_how="discarded", resolved_by="ana", resolved_at=rows.ago(60))
    assert letters("f").items == []
    (found,) = letters("f", tab="discarded").items
    assert (found.resolved_how, found.resolved_by) == ("discarded", "ana")
    assert 60 <= found.resolved_ago < 80


def test_letters_are_filtered_as_their_causes_are():
    kept = letter("f", type="t.one", error_message="Alpha")
    letter("f", type="t.two", error_message="Alpha")
    letter("f", type="t.one", error_message="Beta")
    assert [item.id for item in letters("f", LetterFilter(type="t.one", search="alpha")).items] == [kept]


@pytest.mark.parametrize(
    "text",
    ["", "x", "1-", f"-{HEX}", f"1-{HEX[1:]}", f"{'9' * 18}-{HEX}", f"1-{UUID(HEX)}", f"1-{HEX}\n"],
)
def test_what_is_no_cursor_is_refused(text):
    with pytest.raises(ValueError, match="cursor"):
        LetterCursor.parse(text)


def test_a_tab_that_is_none_is_refused():
    with pytest.raises(KeyError):
        letters("f", tab="x")
