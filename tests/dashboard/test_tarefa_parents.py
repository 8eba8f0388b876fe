"""The page of a job that waits for others, and of one that fell with another."""

import pytest

from jobs import transitions
from jobs.states import State
from tests.dashboard.test_tarefa import browser, page  # noqa: F401  (a fixture)
from tests.transitions.children import child, running
from tests.transitions.rows import make_job

pytestmark = pytest.mark.django_db


def link(id_):
    return f'href="/painel/tarefas/{id_}"'


def test_a_job_that_waits_for_others_names_those_that_have_not_ended(browser):  # noqa: F811
    first, second, done = running(), make_job().id, make_job(State.SUCCEEDED).id
    id_ = child(first, second, done)
    status, text = page(browser, id_)
    assert status == 200
    assert link(first) in text
    assert link(second) in text
    assert link(done) not in text


def test_a_job_that_fell_with_another_says_with_which_one(browser):  # noqa: F811
    parent = make_job(State.FAILED).id
    id_ = child(parent)
    transitions.check_parents([id_])
    status, text = page(browser, id_)
    assert status == 200
    assert "a job that it waited for did not succeed" in text
    assert link(parent) in text


def test_so_it_does_when_that_one_is_gone_by_now(browser):  # noqa: F811
    parent = make_job(State.FAILED).id
    id_ = child(parent)
    transitions.check_parents([id_])
    transitions.delete([parent])
    assert link(parent) in page(browser, id_)[1]
