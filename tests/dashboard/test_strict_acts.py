"""What an act over many was not asked for it does not do: a filter that is half understood is refused."""

import pytest
from django.core.cache import cache

from jobs import bulk
from jobs.ids import new_id
from jobs.states import State
from tests.kit.people import signed_in
from tests.transitions import rows
from tests.transitions.rows import make_letter

BY_SCRIPT = {"X-Turno-Act": "1", "Accept": "application/json"}
START, PREVIEW = "/painel/lotes", "/painel/lotes/previa"


@pytest.fixture
def browser(clean_tables):
    cache.clear()
    yield signed_in("olga", is_staff=True)
    bulk.crew.join()


@pytest.mark.parametrize(("target", "filter_", "named"), [
    ("jobs", "estado=falha&tipoo=a.b", "tipoo"),
    ("jobs", "estado=falha&Tipo=a.b", "Tipo"),
    ("jobs", "tipo=a.b&tipo=c.d", "tipo"),
    ("jobs", "estado=falha&de=", None),
    ("letters", "causa=ab&causa=cd", "causa"),
    ("letters", "fingerprint=ab", "fingerprint"),
    ("letters", "situacao=descartadas", "situacao"),
    ("letters", "situacao=reenfileiradas&causa=ab", "situacao"),
])  # fmt: skip
def test_a_filter_with_anything_strange_in_it_is_refused_by_name(browser, target, filter_, named):
    made = rows.make_job(State.FAILED, id=new_id())
    make_letter(made, id=new_id(), fingerprint="ab")
    query = {"act": "requeue", "target": target, "filter": filter_}
    for answer in (browser.get(PREVIEW, query, headers=BY_SCRIPT), browser.post(START, query, headers=BY_SCRIPT)):
        if named is None:  # an empty value says nothing, and is no parameter
            assert answer.status_code == 200
        else:
            assert answer.status_code == 400
            assert list(answer.json()["errors"]) == [named]
    bulk.crew.join()
    assert (rows.state(made.id) == State.FAILED) is (named is not None)
