"""The screen Promessas: three sentences, what is broken with its jobs and what to do, two days, the last storm."""

import re

import pytest

from jobs import invariants
from jobs.ids import new_id
from jobs.invariants import INVARIANTS, Checked, Finding, Promise
from tests.dashboard.pages import signed_in, text
from tests.transitions.rows import execute

pytestmark = pytest.mark.django_db
PAGE, PART = "/painel/promessas", "/painel/partes/promessas"
HOSTILE = "<script>alert(1)</script>"


@pytest.fixture
def client():
    with signed_in() as client:
        yield client


def looked(*found, **besides):
    findings = tuple(Finding(name, Promise.LOST, count, ids, "", "", more=count > 999) for name, count, *ids in found)
    invariants.keep(
        Checked(findings, **{"unanswered": (), "attended": True, "unsure": False, "seconds": 0.1} | besides)
    )


def page(client, path=PAGE):
    answer = client.get(path)
    assert answer.status_code == 200
    return answer.content.decode()


def cards(html):
    """Of each promise: its sentence and how it stands."""
    found = re.findall(r'<section class="panel pr".*?<h2[^>]*>(.*?)</h2>\s*<span[^>]*>(.*?)</span>', html, re.S)
    return [(says, stands) for says, stands in found]


def test_a_house_that_was_never_looked_at_says_so(client):
    html = page(client)

    assert "Nobody has looked yet" in text(html)
    assert "without a worker nobody does" in text(html)
    assert [stands for _, stands in cards(html)] == ["not known"] * 3
    assert html.count('class="none"') == 48
    assert "None was reported here." in text(html)


def test_three_kept_promises_are_three_sentences_with_every_statement(client):
    looked()
    html = page(client)

    assert cards(html) == [
        ("No accepted job is lost.", "kept"), ("No attempt runs twice.", "kept"), ("What you see is true.", "kept"),
    ]  # fmt: skip
    assert "All three are kept" in text(html)
    assert "1 look, none has found anything broken" in text(html)
    said = text(html).replace("&#x27;", "'")
    assert [one.name for one in INVARIANTS if not one.broker and one.says not in said] == []
    assert "pr-duvida" not in html


def test_what_is_broken_names_its_jobs_since_when_and_what_to_do(client):
    job = new_id()
    looked(("due_is_enqueued", 1000, str(job)), ("guards_stand", 1, "jobs_state_known"))
    execute(
        "UPDATE turno.promise_checks SET found = jsonb_set(found, '{0,since}', to_jsonb(now() - interval '1 hour'))"
    )
    html = page(client)

    assert "2 of three are broken" in text(html)
    assert [stands for _, stands in cards(html)] == ["broken", "broken", "kept"]
    assert f'href="/painel/tarefas/{job}"' in html
    assert "1,000+ break it, first found 1 h ago" in text(html)
    assert "The promoter does not keep up." in text(html)
    assert "<code>jobs_state_known</code>" in html
    assert html.count('class="ko"') == 1


def test_an_old_look_is_told_as_old(client):
    looked()
    execute("UPDATE turno.promise_checks SET at = at - interval '20 minutes'")
    html = page(client)

    assert "Nobody has looked for 20 min" in text(html)
    assert [stands for _, stands in cards(html)] == ["not known"] * 3


@pytest.mark.parametrize(
    ("besides", "why"),
    [({"unanswered": ("fired_once",)}, "took too long"), ({"attended": False}, "No worker has been there for long")],
)
def test_what_could_not_be_looked_at_is_said(client, besides, why):
    looked(**besides)
    html = page(client)

    assert why in text(html)
    assert "not known" in text(html)
    assert "Not all could be looked at" in text(html)


def test_the_last_storm_is_told_with_its_faults_the_most_frequent_first(client):
    invariants.keep_storm(
        place="cluster", seed=41, seconds=1800.0, jobs=61240, faults={"cut": 44, "kill_worker": 112},
        findings=[Finding("fired_once", Promise.TWICE, 1, (), "", "")],
    )  # fmt: skip
    said = text(page(client))

    assert "Something was broken afterwards A recurring job makes one job for each of its instants." in said
    assert "Where cluster Duration 30 min Jobs 61,240 Seed 41 Faults 156" in said
    assert "kill_worker 112 cut 44" in said


def test_what_was_stored_is_shown_as_text(client):
    looked(("guards_stand", 1, HOSTILE), ("no_such_thing", 1, HOSTILE))
    invariants.keep_storm(place=HOSTILE, seed=1, seconds=1.0, jobs=1, faults={HOSTILE: 1})
    html = page(client)

    assert HOSTILE not in html
    assert html.count("&lt;script&gt;alert(1)") == 3


def test_the_part_is_fetched_again_and_answers_nothing_when_nothing_changed(client):
    looked()
    answer = client.get(PART)

    assert answer.status_code == 200
    assert client.get(PART, headers={"X-Turno-Seen": answer["X-Turno-Seen"]}).status_code == 204
    assert 'data-live="promises workers"' in answer.content.decode()


def test_the_navigation_marks_what_is_broken(client):
    looked()
    nav = page(client, "/painel/partes/contagens?tela=promessas")
    assert ("Administration" in nav, "broken" in nav) == (True, False)

    looked(("due_is_enqueued", 1))
    with signed_in() as another:
        assert "broken" in page(another, "/painel/partes/contagens?tela=promessas")
