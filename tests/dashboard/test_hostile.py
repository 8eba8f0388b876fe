"""What people and programs may send or store to do harm: no error of ours, no formula, no way out of the house."""

import csv
import io
import re

import pytest
from django.core.cache import cache
from django.test import Client

from jobs import bulk
from jobs.ids import new_id
from jobs.states import State
from tests.kit.people import signed_in
from tests.transitions import rows

DAWN, DUSK = "0001-01-01T00:00:00+00:00", "9999-12-31T23:59:59.999999+00:00"
BY_SCRIPT = {"X-Turno-Act": "1", "Accept": "application/json"}
# Where a spreadsheet that divides by semicolons or tabs, and knows no quotation marks within a line, begins a cell.
ELSEWHERE = re.compile(r"[;\t\r\n]+")


@pytest.fixture
def browser(clean_tables):
    cache.clear()
    yield signed_in("olga", is_staff=True)
    bulk.crew.join()


@pytest.mark.parametrize("zone", ["UTC", "Pacific/Kiritimati", "Etc/GMT+12"])
@pytest.mark.parametrize("query", [
    {"ir": DUSK}, {"ir": "9999-12-31T23:59:59.9999"}, {"ir": DAWN}, {"ir": DUSK, "ordem": "antigas"}, {"de": DUSK},
    {"ate": DAWN}, {"de": DAWN, "ate": DUSK},
])  # fmt: skip
def test_the_ends_of_the_calendar_are_instants_like_others(browser, zone, query):
    browser.cookies["turno_fuso"] = zone
    assert browser.get("/painel/tarefas", query).status_code in {200, 302}


@pytest.mark.parametrize("filter_", ["periodo=24h", "terminou=30d", "periodo=7d&terminou=15min"])
@pytest.mark.parametrize("before", [DAWN, DUSK])
def test_a_window_that_ends_at_either_end_of_the_calendar_harms_nothing(browser, filter_, before):
    kept = rows.make_job(State.FAILED, id=new_id())
    query = {"act": "delete", "filter": filter_, "before": before}
    assert browser.get("/painel/lotes/previa", query, headers=BY_SCRIPT).status_code == 200
    answer = browser.post("/painel/lotes", query, headers=BY_SCRIPT)
    assert answer.status_code == 200
    bulk.wait(bulk.get(answer.json()["run"]["id"]).id, 20)
    assert rows.state(kept.id) == State.FAILED or before == DUSK


@pytest.mark.parametrize("evil", [
    "=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "\n=1", " =1", "x;=1", 'x;"=1', "x; =1", "x\n=1", "x\t@y",
    "a\r\n-1", "\uff1d1", "x;\uff0b1",
])  # fmt: skip
def test_no_text_becomes_a_formula_whatever_a_spreadsheet_divides_by(browser, evil):
    rows.make_job(State.FAILED, id=new_id(), error_type=evil, error_message=evil, tags=[evil], payload={"a": evil},
                  origin=evil)  # fmt: skip
    raw = b"".join(browser.get("/painel/tarefas.csv").streaming_content).decode("utf-8-sig")
    [_head, line] = csv.reader(io.StringIO(raw, newline=""))
    pieces = [piece for cell in line for piece in ELSEWHERE.split(cell)]
    begins = [piece.strip(' "')[:1] for piece in pieces]
    assert not {"=", "+", "-", "@", "\uff1d", "\uff0b"} & set(begins), pieces


def test_what_is_no_object_is_exported_too(browser):
    rows.make_job(id=new_id(), payload=[1, {"a": None}])
    raw = b"".join(browser.get("/painel/tarefas.csv").streaming_content).decode("utf-8-sig")
    assert next(csv.DictReader(io.StringIO(raw)))["payload"] == '[1, {"a": null}]'


@pytest.mark.parametrize(("referer", "leads"), [
    ("http://testserver/painel/tarefas?estado=falha", "/painel/tarefas?estado=falha"),
    ("http://testserver//evil.example/x", "/"),
    ("http://evil.example/painel/", "/"),
    ("http://testserver@evil.example/", "/"),
    ("javascript:alert(1)", "/"),
    ("http://[", "/"),
    ("", "/"),
])  # fmt: skip
def test_without_a_script_an_act_leads_back_to_its_page_and_out_of_the_house_never(browser, referer, leads):
    made = rows.make_job(id=new_id())
    answer = browser.post(f"/painel/tarefas/{made.id}/cancelar", {}, headers={"Referer": referer})
    assert (answer.status_code, answer["Location"]) == (302, leads)


@pytest.mark.parametrize(("path", "form"), [("/painel/idioma", {"language": "en"}), ("/painel/fuso", {"zone": "UTC"})])
def test_no_cookie_of_a_house_with_secure_cookies_goes_over_plain_http(db, settings, path, form):
    settings.SESSION_COOKIE_SECURE = True
    answer = Client().post(path, form)
    assert answer.status_code == 302
    assert all(cookie["secure"] for cookie in answer.cookies.values())
