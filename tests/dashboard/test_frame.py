"""What every screen has: fragments that answer 204, acts, the display zone, the language, the palette, the counts."""

import json
from datetime import UTC, datetime, timedelta

import pytest
from django.core.cache import cache
from django.http import HttpResponse
from django.test import RequestFactory
from django.utils import timezone, translation
from hypothesis import given
from hypothesis import strategies as st

from dashboard import acts, fragments, zone
from jobs import wording
from jobs.enqueue import enqueue
from tests.api.client import KEY


@pytest.fixture
def browser(client):
    cache.clear()
    client.post("/entrar", {"chave": KEY})
    return client


@pytest.fixture
def portuguese():
    with translation.override("pt-br"), timezone.override("America/Sao_Paulo"):
        yield


class TestAFragment:
    def test_differs_in_its_running_clocks_without_being_another(self):
        one = '<b>3</b> <time data-since="83">1:23</time> <time data-until="5" title="x">0:05</time>'
        later = '<b>3</b> <time data-since="84">1:24</time> <time data-until="4" title="x">0:04</time>'
        assert fragments.seen_tag(one) == fragments.seen_tag(later)

    def test_is_another_when_anything_else_changed(self):
        one = '<time data-ago="83" title="14:00">1 min</time>'
        assert fragments.seen_tag(one) != fragments.seen_tag(one.replace("14:00", "14:01"))
        assert fragments.seen_tag("<b>3</b>") != fragments.seen_tag("<b>4</b>")

    @pytest.mark.django_db
    def test_is_answered_once_and_then_with_204_until_it_changes(self, browser):
        first = browser.get("/painel/partes/contagens")
        assert first.status_code == 200
        assert int(first[fragments.AT]) > 0
        again = browser.get("/painel/partes/contagens", headers={"X-Turno-Seen": first[fragments.SEEN]})
        assert again.status_code == 204
        assert again.content == b""


class TestAnAct:
    @pytest.fixture
    def act(self):
        @acts.act
        def view(request):
            return acts.done(request, "Done", detail="All of it.", link=("/painel/", "Open"))

        return view

    def test_is_a_post_and_nothing_else(self, act, rf: RequestFactory):
        assert act(rf.get("/")).status_code == 405

    @pytest.mark.django_db
    def test_needs_the_token_of_the_form(self, client):
        client.handler.enforce_csrf_checks = True
        assert client.post("/painel/idioma", {"language": "en"}).status_code == 403

    def test_answers_a_script_with_what_to_say(self, rf: RequestFactory):
        request = rf.post("/", headers={"X-Turno-Act": "1"})
        said = json.loads(acts.done(request, "Done", link=("/painel/", "Open")).content)
        assert said["toast"] == "Done"
        assert said["link"] == {"href": "/painel/", "text": "Open"}

    @pytest.mark.parametrize("elsewhere", ["https://evil.example/", "//evil.example", "javascript:alert(1)"])
    def test_leads_a_browser_without_scripts_back_and_nowhere_else(self, rf: RequestFactory, elsewhere):
        answer = acts.done(rf.post("/", {"next": elsewhere}), "Done")
        assert (answer.status_code, answer["Location"]) == (302, "/")
        assert acts.done(rf.post("/", {"next": "/painel/?x=1"}), "Done")["Location"] == "/painel/?x=1"


class TestTheDisplayZone:
    def see(self, rf, cookie):
        seen = []

        def view(_request):
            seen.append(timezone.get_current_timezone_name())
            return HttpResponse()

        request = rf.get("/")
        request.COOKIES[zone.COOKIE] = cookie
        zone.ViewerZone(view)(request)
        return seen[0]

    def test_is_the_one_of_the_cookie(self, rf):
        assert self.see(rf, "America/Sao_Paulo") == "America/Sao_Paulo"

    @pytest.mark.parametrize(
        "odd", ["", "../../etc/passwd", "/etc/passwd", "Nowhere/Land", "A" * 300, "a\0b", "America", "ü"]
    )
    def test_is_the_house_s_for_any_name_that_is_none(self, rf, odd):
        assert self.see(rf, odd) == "UTC"

    @given(st.text(max_size=80))
    def test_never_fails_on_a_cookie(self, text):
        zone.zone_of(text)

    def test_is_named_by_its_city_and_its_distance_from_utc(self):
        assert zone.label(zone.zone_of("America/Sao_Paulo")) == "Brasília (UTC−3)"
        assert zone.label(zone.zone_of("America/New_York")).startswith("New York (UTC−")
        assert zone.label(zone.zone_of("Asia/Kolkata")) == "Kolkata (UTC+5:30)"
        assert zone.label(UTC) == "UTC"

    @pytest.mark.django_db
    def test_can_be_chosen(self, client):
        answer = client.post("/painel/fuso", {"zone": "Europe/Lisbon", "next": "/painel/"})
        assert answer.status_code == 302
        assert answer.cookies[zone.COOKIE].value == "Europe/Lisbon"
        assert client.post("/painel/fuso", {"zone": "Moon/Base"}).status_code == 400


@pytest.mark.django_db
def test_a_language_can_be_chosen_and_only_one_that_is_spoken(client):
    answer = client.post("/painel/idioma", {"language": "en", "next": "/painel/"})
    assert answer.cookies["django_language"].value == "en"
    assert client.post("/painel/idioma", {"language": "xx"}).status_code == 400


@pytest.mark.django_db
class TestThePalette:
    def test_finds_a_job_by_its_id_and_by_its_type(self, browser):
        job = enqueue("report.generate", {}).id
        for text in (str(job), "report.generate"):
            html = browser.get("/painel/partes/achados", {"q": text}).content.decode()
            assert f"/painel/tarefas/{job}" in html

    @pytest.mark.parametrize("text", ["", " ", "%", "'; --", "<script>x</script>", "a" * 5000, "\u202e", "ab\ncd"])
    def test_takes_any_text(self, browser, text):
        answer = browser.get("/painel/partes/achados", {"q": text})
        assert answer.status_code == 200
        assert "<script>" not in answer.content.decode()


class TestNumbersInWords:
    def test_counts_are_short_when_they_are_large(self, portuguese):
        assert wording.count(128) == "128"
        assert wording.count(47_112) == "47.112"
        assert wording.count(None) == "–"

    @pytest.mark.parametrize(
        ("seconds", "words"),
        [
            (0.0421, "42 ms"),
            (2.1, "2,1 s"),
            (59.96, "1 min"),
            (402, "6 min 42 s"),
            (11_100, "3 h 05 min"),
            (187_200, "2 d 4 h"),
        ],
    )
    def test_spans(self, portuguese, seconds, words):
        assert wording.span(seconds) == words

    def test_clocks(self):
        assert [wording.clock(s) for s in (7, 84, 7510, None, -3)] == ["0:07", "1:24", "2:05:10", "–", "0:00"]

    def test_sizes(self, portuguese):
        assert [wording.size(n) for n in (812, 48_100_000, 999_960)] == ["812 B", "48,1 MB", "1,0 MB"]

    def test_an_exact_instant_names_its_zone_and_utc(self, portuguese):
        at = datetime(2026, 10, 14, 17, 24, 31, tzinfo=UTC)
        assert wording.exact(at) == "14/10/2026 14:24:31 -03 · 2026-10-14 17:24:31 UTC"

    def test_days_near_are_words(self, portuguese):
        now = timezone.now()
        noon = timezone.localtime(now).replace(hour=12, minute=5)
        assert wording.day(noon).endswith("12:05")
        assert wording.day(noon - timedelta(days=400)).count("/") == 2
