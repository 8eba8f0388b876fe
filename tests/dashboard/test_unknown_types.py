"""A type that nobody has, on the screens: the overview asks for a worker, the list and the job say why it waits."""

import re

import pytest

from tests.dashboard.boards import make_worker
from tests.dashboard.pages import signed_in, text
from tests.transitions import rows
from tests.transitions.unserved import parked, unserved

pytestmark = pytest.mark.django_db


@pytest.fixture
def browser():
    with signed_in() as client:
        yield client


def words(browser, address):
    """The text of a page, without markup."""
    html = browser.get(address).content.decode()
    return text(html), html


def test_the_overview_names_the_type_the_queue_and_what_helps(browser):
    make_worker("w")
    unserved(since=90)
    parked(60)
    text, html = words(browser, "/painel/")
    assert "1 needs attention" in text
    assert "No worker of the queue default knows the type a.type" in text
    assert "1 job waits. Unknown for" in text
    assert "; it ends as failed in" in text
    assert "Start a worker whose handlers have it; its jobs then run by themselves." in text
    assert 'href="/painel/tarefas?estado=fila&amp;tipo=a.type&amp;fila=default"' in html
    assert re.search(r'data-since="9\d"', html)
    assert re.search(r'data-until="35[34]\d"', html)


def test_several_are_counted(browser):
    make_worker("w")
    unserved()
    parked()
    parked()
    text, _ = words(browser, "/painel/")
    assert "2 jobs wait. Unknown for" in text
    assert "the first ends as failed in" in text


def test_the_list_and_the_page_of_a_job_say_what_it_waits_for(browser):
    make_worker("w")
    unserved(since=90)
    made = parked(60)
    assert "unknown type" in words(browser, "/painel/tarefas?estado=fila")[0]
    text, html = words(browser, f"/painel/tarefas/{made.id}")
    assert "No worker knows its type." in text
    assert "It ends as failed in" in text
    assert "Unless a worker of the queue default has its type before." in text
    assert re.search(r'data-until="35[34]\d"', html)


def test_one_that_was_given_up_says_so_with_what_helps(browser):
    said = "No live worker of the queue default knows the type a.type. Start one whose handlers have it."
    made = rows.make_job(
        "Failed", type="a.type", failure_kind="unknown_type", error_type="UnknownType", error_message=said
    )
    rows.make_letter(made, failure_kind="unknown_type", error_type="UnknownType", error_message=said)
    assert "Unknown type" in words(browser, "/painel/tarefas?estado=falha")[0]
    assert said in words(browser, f"/painel/tarefas/{made.id}")[0]
    assert "UnknownType" in words(browser, "/painel/erros")[0]
