"""The editor of a recurring job: what is wrong beside its field, two people at once, what would come of it."""

import json
import re
from uuid import uuid4

import pytest

from jobs import schedules
from jobs.models import RecurringJob
from jobs.schedules import Wanted
from tests.dashboard.pages import signed_in, text
from tests.dashboard.recurring import LIST, SCRIPT, TYPE, form, make
from tests.kit import people
from tests.transitions import rows
from tests.transitions.recurring import half_a_day_away

pytestmark = pytest.mark.django_db
NEW, PREVIEW = f"{LIST}/nova", f"{LIST}/previa"


@pytest.fixture
def browser():
    with signed_in() as client:
        yield client


def html_of(browser, path):
    answer = browser.get(path)
    assert answer.status_code == 200, answer.content
    return answer.content.decode()


def seen(html):
    return re.search(r'name="seen" value="([^"]+)"', html)[1]


def wrong(html, name):
    """What stands in the place of a field's errors."""
    return text(re.search(rf'<div class="errs" id="e-{name}"(.*?)</div>', html, re.S)[1].partition(">")[2]).strip()


def test_a_new_one_is_saved_and_leads_back_to_the_list(browser):
    html = html_of(browser, NEW)
    for name in ("name", "type", "cron", "timezone", "overlap", "misfire", "payload", "queue", "priority"):
        assert f'name="{name}"' in html
        assert f'for="f-{name}"' in html
    answer = browser.post(NEW, form(queue="reports", priority="-3", overlap="queue", misfire="all"), headers=SCRIPT)
    assert answer.json()["go"] == LIST
    row = RecurringJob.objects.get()
    assert (row.name, row.type, row.cron, row.timezone) == ("fechamento", TYPE, "0 30 7 * * 1-5", "UTC")
    assert (row.queue, row.priority, row.overlap, row.misfire, row.payload) == (
        "reports", -3, "queue", "all", {"rows": 5},
    )  # fmt: skip
    assert row.next_run_at is not None


def test_without_scripts_the_same_form_saves_too(browser):
    answer = browser.post(NEW, form())
    assert (answer.status_code, answer["Location"]) == (302, LIST)


def test_everything_that_is_wrong_is_said_at_once_and_nothing_typed_is_lost(browser):
    typed = form(
        name="Não Serve",
        type="report.generate",
        cron="0 99 7 * * *",
        timezone="Moon/Base",
        payload='{"rows": -1, "x": "<i>"}',
        queue="ö",
        priority="11",
    )
    answer = browser.post(NEW, typed)
    assert answer.status_code == 400
    html = answer.content.decode()
    for name in ("name", "cron", "timezone", "queue", "priority"):
        assert wrong(html, name), name
    assert "rows : Expected at least 1." in wrong(html, "payload")
    assert "x : There is no such field" in wrong(html, "payload")
    assert "7 fields to correct" in text(html)
    assert 'value="0 99 7 * * *"' in html
    assert "&quot;x&quot;: &quot;&lt;i&gt;&quot;" in html
    assert 'class="more-opts" open' in html
    assert not RecurringJob.objects.exists()
    told = browser.post(NEW, typed, headers=SCRIPT)
    assert told.status_code == 400
    assert {"name", "cron", "timezone", "queue", "priority", "payload.rows", "payload.x"} <= set(told.json()["errors"])


@pytest.mark.parametrize("payload", ["{", "[1]", "nada", '{"a": 1, "a": 2}', "{" * 5000, '{"rows": NaN}'])
def test_a_payload_that_is_no_json_object_is_refused_beside_its_field_with_all_the_rest(browser, payload):
    html = browser.post(NEW, form(cron="x", payload=payload)).content.decode()
    assert wrong(html, "payload")
    assert wrong(html, "cron")


@pytest.mark.parametrize("priority", ["x", "1.5", "-", "--1", "１", "99999", "1e3"])
def test_a_priority_that_is_no_whole_number_is_refused(browser, priority):
    assert browser.post(NEW, form(priority=priority), headers=SCRIPT).json()["errors"].keys() == {"priority"}


def test_a_name_that_is_taken_is_told_and_what_was_typed_stays(browser):
    make()
    answer = browser.post(NEW, form(cron="* * * * *"))
    assert answer.status_code == 409
    html = answer.content.decode()
    assert "fechamento already" in text(html)
    assert 'value="* * * * *"' in html


def test_an_edit_changes_what_was_edited_and_clears_the_error(browser):
    made = make(error="payload.rows: no")
    html = html_of(browser, f"{LIST}/{made}")
    assert "Can't fire: payload.rows: no" in html
    assert "&quot;rows&quot;: 5" in html
    answer = browser.post(f"{LIST}/{made}", form(cron="@daily", seen=seen(html)), headers=SCRIPT)
    assert answer.status_code == 200, answer.content
    row = RecurringJob.objects.get()
    assert (row.cron, row.error) == ("@daily", None)


def test_a_broken_one_opens_with_what_is_wrong_beside_its_field(browser):
    made = make(timezone="UTC", error="timezone: no; payload.rows: no")
    RecurringJob.objects.filter(id=made).update(timezone="Mars/Olympus", payload={"rows": -1})
    html = html_of(browser, f"{LIST}/{made}")
    assert "Mars/Olympus" in wrong(html, "timezone")
    assert "rows : Expected at least 1." in wrong(html, "payload")
    assert "2 fields to correct" in text(html)
    declared = make("declared", source="declared", error="payload.rows: no")
    RecurringJob.objects.filter(id=declared).update(payload={"rows": -1})
    assert wrong(html_of(browser, f"{LIST}/{declared}"), "payload") == ""


def test_two_who_edit_at_once_do_not_overwrite_each_other(browser):
    made = make()
    first = second = seen(html_of(browser, f"{LIST}/{made}"))
    assert browser.post(f"{LIST}/{made}", form(cron="@daily", seen=first), headers=SCRIPT).status_code == 200
    answer = browser.post(f"{LIST}/{made}", form(cron="@hourly", seen=second))
    assert answer.status_code == 409
    html = answer.content.decode()
    assert "Somebody else has saved it since you opened it" in text(html)
    assert 'value="@hourly"' in html
    assert RecurringJob.objects.get().cron == "@daily"
    assert browser.post(f"{LIST}/{made}", form(seen=second), headers=SCRIPT).status_code == 409


def test_that_it_fires_or_is_disabled_meanwhile_is_no_conflict(browser):
    made = make()
    opened = seen(html_of(browser, f"{LIST}/{made}"))
    rows.execute("UPDATE turno.recurring_jobs SET version = version + 7, last_run_at = now(), skipped = 3")
    schedules.disable(made, actor="key")
    assert browser.post(f"{LIST}/{made}", form(cron="@daily", seen=opened), headers=SCRIPT).status_code == 200
    row = RecurringJob.objects.get()
    assert (row.cron, row.enabled) == ("@daily", False)


def test_a_write_between_the_look_and_the_save_is_looked_at_again(browser, monkeypatch):
    made = make()
    opened, real, times = seen(html_of(browser, f"{LIST}/{made}")), schedules.update, []

    def raced(id_, wanted, **given):
        times.append(1)
        if len(times) == 1:
            rows.execute("UPDATE turno.recurring_jobs SET updated_at = updated_at + interval '1 second'")
        return real(id_, wanted, **given)

    monkeypatch.setattr(schedules, "update", raced)
    assert browser.post(f"{LIST}/{made}", form(cron="@daily", seen=opened), headers=SCRIPT).status_code == 200
    assert len(times) == 2


def test_a_declared_one_is_shown_and_not_edited(browser):
    made = make(source="declared")
    html = html_of(browser, f"{LIST}/{made}")
    assert "Declared in the configuration" in html
    assert html.count("<fieldset disabled") + html.count('class="pair" disabled') == 4
    assert ">Save<" not in html.split("<main")[1].split("</main>")[0]
    answer = browser.post(f"{LIST}/{made}", form(cron="@daily", seen=seen(html)), headers=SCRIPT)
    assert answer.status_code == 409
    assert "declared in the configuration" in answer.json()["detail"]


def test_what_is_not_there_says_so(browser):
    answer = browser.get(f"{LIST}/{uuid4()}")
    assert answer.status_code == 404
    assert "There is no such recurring job" in answer.content.decode()
    assert browser.post(f"{LIST}/{uuid4()}", form(), headers=SCRIPT).status_code == 404
    assert "Deleted" in html_of(browser, f"/painel/partes/recorrentes/{uuid4()}/cabeca")


def test_who_only_looks_sees_the_form_and_saves_nothing():
    made = make()
    viewer = people.signed_in()
    html = html_of(viewer, f"{LIST}/{made}")
    assert "<fieldset disabled" in html
    assert "hx-post" not in html
    for path in (NEW, f"{LIST}/{made}", PREVIEW):
        assert viewer.post(path, form(name="b"), headers=SCRIPT).status_code == 403
    assert RecurringJob.objects.count() == 1


class TestThePreview:
    def told(self, browser, touched="*", **fields):
        answer = browser.post(PREVIEW, form(**fields) | {"touched": touched})
        assert answer.status_code == 200, answer.content
        return answer.content.decode()

    def test_says_the_words_and_five_instants_in_both_zones(self, browser):
        browser.cookies["turno_fuso"] = "America/Sao_Paulo"
        html = self.told(browser, timezone="America/Manaus", cron="0 30 7 * * *")
        said = text(html)
        assert "07:30:00" in said
        assert html.count("<tr>") == 6
        assert said.count("07:30 08:30") == 5
        assert "Manaus (UTC−4)" in said
        assert 'hx-target="#e-cron"' in html

    def test_one_zone_stands_there_once(self, browser):
        html = self.told(browser, cron="0 30 7 * * *")
        assert html.count('<th scope="col"') == 2

    def test_says_who_else_runs_in_that_minute_and_how_much_room_the_queue_has(self, browser):
        hour = half_a_day_away()  # nothing passes while it is looked at
        make("one", f"0 0 {hour} * * *")
        made = make("two", f"20 0 {hour} * * *")
        rows.make_worker(queues={"reports": 6}, types=[TYPE])
        said = text(self.told(browser, cron=f"0 0 {hour} * * *", queue="reports"))
        assert "In the same minute 2 more recurring jobs run; reports has 6 slots." in said
        own = text(self.told(browser, cron=f"0 0 {hour} * * *", queue="reports", id=str(made)))
        assert "In the same minute 1 more recurring job runs;" in own
        assert "no worker serves slow" in text(self.told(browser, cron=f"0 1 {hour} * * *", queue="slow"))

    def test_says_what_is_wrong_only_of_what_was_touched(self, browser):
        html = self.told(browser, touched="cron", name="", cron="0 99 * * * *")
        assert wrong(html, "cron")
        assert not wrong(html, "name")
        assert 'class="is-bad"' in html
        assert "1 field to correct" in text(html)

    @pytest.mark.parametrize(
        "cron", ["", " ", "@daily", "@never", "* " * 500, "\0", "0 0 31 2 *", "<script>", "١ * * * *"]
    )
    @pytest.mark.parametrize("zone", ["UTC", "", "../../etc/passwd"])
    def test_takes_anything(self, browser, cron, zone):
        html = self.told(browser, cron=cron, timezone=zone, type="no.such", payload="{", name="é", id="x")
        assert "<script>" not in html

    def test_an_alias_is_shown_as_what_it_stands_for(self, browser):
        cells = re.search(r'id="f-cron-h".*?</div>', self.told(browser, cron="@daily"), re.S)[0]
        assert re.findall(r"<code>([^<]+)</code>", cells) == ["0", "0", "0", "*", "*", "*"]

    def test_writes_nothing(self, browser):
        self.told(browser)
        assert not RecurringJob.objects.exists()


def test_a_type_offers_its_fields_and_what_a_payload_of_it_begins_with(browser):
    html = html_of(browser, f"{NEW}?tipo=notification.send")
    assert re.search(r'<option value="notification.send" selected', html)
    begun = re.search(r'data-skeleton="([^"]*)"', html)[1].replace("&quot;", '"')
    assert json.loads(begun) == {"recipient": "ana.souza@example.com"}
    assert "<code>channel</code>" in html


def test_a_stored_payload_of_any_shape_can_be_opened(browser):
    made = schedules.create(Wanted("odd", TYPE, "@daily", payload={"title": "ção <b>"}), actor="key")
    rows.execute("UPDATE turno.recurring_jobs SET payload = '[1, null]'")
    assert "null" in html_of(browser, f"{LIST}/{made}")
