"""What people do to queues: pause and resume, also types, tags and keys, and the settings of a queue."""

import pytest
from django.urls import reverse

from dashboard import shared
from tests.dashboard.boards import make_worker
from tests.dashboard.pages import signed_in
from tests.kit import people
from tests.queries.house import pause
from tests.transitions import rows

pytestmark = pytest.mark.django_db


@pytest.fixture
def browser():
    with signed_in() as client:
        yield client


def post(browser, name, data, *args, by_script=True):
    headers = {"X-Turno-Act": "1", "Accept": "application/json"} if by_script else {}
    return browser.post(reverse(name, args=args), data, headers=headers)


def paused():
    return rows.select("SELECT scope, value, reason, paused_by, until IS NULL AS forever FROM turno.pauses")


def test_a_queue_is_paused_with_its_reason_and_resumed(browser):
    answer = post(browser, "pausar", {"scope": "queue", "value": "reports", "reason": " the printer ", "por": ""})
    assert answer.json()["toast"] == "Paused: reports."
    [row] = paused()
    assert (row["scope"], row["value"], row["reason"], row["forever"]) == ("queue", "reports", "the printer", True)
    assert row["paused_by"]
    answer = post(browser, "retomar", {"scope": "queue", "value": "reports"})
    assert answer.json()["toast"] == "Resumed: reports."
    assert paused() == []
    assert post(browser, "retomar", {"scope": "queue", "value": "reports"}).status_code == 404


def test_a_pause_may_end_by_itself(browser):
    post(browser, "pausar", {"scope": "tag", "value": "month end", "por": "1h"})
    [left] = rows.select("SELECT extract(epoch FROM until - now())::float8 AS left FROM turno.pauses")
    assert 3500 < left["left"] <= 3610


@pytest.mark.parametrize(
    ("data", "field"),
    [({"scope": "galaxy", "value": "x"}, "scope"), ({"scope": "type", "value": "A B"}, "value"),
     ({"scope": "key", "value": ""}, "value"), ({"scope": "key", "value": "k", "por": "1y"}, "por")],
)  # fmt: skip
def test_a_pause_that_makes_no_sense_is_told_beside_its_field(browser, data, field):
    answer = post(browser, "pausar", data)
    assert answer.status_code == 400
    assert list(answer.json()["errors"]) == [field]
    assert paused() == []


def test_settings_of_a_queue_are_saved_and_taken_back(browser):
    settings = "SELECT slots, default_priority FROM turno.queues WHERE name = 'reports'"
    assert (
        post(browser, "fila-ajustes", {"slots": "3", "default_priority": "-2"}, "reports").json()["toast"] == "Saved."
    )
    assert rows.select(settings) == [{"slots": 3, "default_priority": -2}]
    post(browser, "fila-ajustes", {"slots": "", "default_priority": ""}, "reports")
    assert rows.select(settings) in ([], [{"slots": None, "default_priority": None}])


@pytest.mark.parametrize(("name", "value"), [("slots", "1001"), ("slots", "-1"), ("slots", "two"), ("slots", "٣"),
                                             ("default_priority", "11"), ("default_priority", "1e1")])  # fmt: skip
def test_settings_that_make_no_sense_are_told_beside_their_field(browser, name, value):
    answer = post(browser, "fila-ajustes", {name: value}, "reports")
    assert answer.status_code == 400
    assert list(answer.json()["errors"]) == [name]


def test_without_a_script_an_act_leads_back_to_the_page(browser):
    answer = post(browser, "pausar", {"scope": "queue", "value": "reports"}, by_script=False)
    assert answer.status_code == 302


def test_who_only_looks_sees_all_and_can_press_nothing():
    make_worker("a", {"default": 4})
    pause("queue", "reports")
    pause("tag", "lote-9")
    viewer = people.signed_in()
    shared.forget()
    for path, buttons in (("/painel/filas", 4), ("/painel/filas/default", 2)):
        html = viewer.get(path).content.decode()
        assert html.count('aria-disabled="true" title=') == buttons
    for name, args in (("pausar", ()), ("retomar", ()), ("fila-ajustes", ("default",))):
        data = {"scope": "queue", "value": "reports", "slots": "1"}
        assert post(viewer, name, data, *args).status_code == 403
    assert len(paused()) == 2
    assert rows.select("SELECT name FROM turno.queues") == []
