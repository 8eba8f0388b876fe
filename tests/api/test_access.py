"""Who is let in: by key, by session, by being on this machine; and who is not."""

import pytest
from django.core.cache import cache
from django.test import Client

from jobs import access, throttle
from jobs.conf import overridden
from tests.api.client import KEY, Api
from tests.transitions import rows

pytestmark = pytest.mark.django_db
OPEN = {"/api/info", "/health/live", "/health/ready"}
BROWSER = {"Accept": "text/html"}


@pytest.fixture
def keyless():
    with overridden(api={"key": None}):
        yield


@pytest.mark.parametrize("path", sorted(OPEN))
def test_the_open_addresses_answer_without_a_key(stranger, path):
    assert stranger.get(path).status == 200


def test_a_stranger_is_told_how_to_come_in(stranger):
    answer = stranger.get("/api/jobs")
    assert "X-Turno-Key" in answer.problem(401)["detail"]
    assert answer.headers["WWW-Authenticate"].startswith("Bearer")


@pytest.mark.parametrize(
    "headers", [{"X-Turno-Key": KEY}, {"Authorization": f"Bearer {KEY}"}, {"Authorization": f"bearer  {KEY} "}]
)
def test_the_key_is_taken_from_either_header(stranger, headers):
    assert stranger.get("/api/jobs", **headers).status == 200


@pytest.mark.parametrize(
    "headers", [{"X-Turno-Key": "wrong"}, {"X-Turno-Key": KEY + "x"}, {"X-Turno-Key": KEY[:-1]}, {"X-Turno-Key": "ção"},
                {"X-Turno-Key": "wrong", "Authorization": f"Bearer {KEY}"}, {"Authorization": "Bearer wrong"}],
)  # fmt: skip
def test_a_wrong_key_is_a_401(stranger, headers):
    assert stranger.get("/api/jobs", **headers).problem(401)["tries_left"] == 4


@pytest.mark.parametrize("headers", [{"X-Turno-Key": ""}, {"Authorization": "Basic eDp5"}, {"Authorization": "Bearer"}])
def test_no_key_at_all_counts_as_no_failure(stranger, headers):
    assert "tries_left" not in stranger.get("/api/jobs", **headers).problem(401)


def test_a_key_may_hold_any_letters(stranger):
    with overridden(api={"key": "chave-de-avô"}):
        sent = "chave-de-avô".encode().decode("latin-1")
        assert stranger.get("/api/jobs", X_Turno_Key=sent).status == 200


def test_the_sixth_wrong_key_of_a_minute_is_a_429(stranger):
    for left in (4, 3, 2, 1, 0):
        assert stranger.get("/api/jobs", X_Turno_Key="wrong").problem(401)["tries_left"] == left
    answer = stranger.get("/api/jobs", X_Turno_Key="wrong")
    assert 0 < answer.problem(429)["retry_after"] <= 60
    assert answer.headers["Retry-After"] == str(answer.json["retry_after"])


def test_over_the_limit_even_the_right_key_waits_for_the_minute_to_end(stranger):
    for _ in range(5):
        stranger.get("/api/jobs", X_Turno_Key="wrong")
    stranger.get("/api/jobs", X_Turno_Key=KEY).problem(429)
    cache.clear()
    assert stranger.get("/api/jobs", X_Turno_Key=KEY).status == 200


def test_a_wrong_neighbour_does_not_shut_out_whoever_came_with_the_right_key(api):
    assert api.get("/api/jobs").status == 200
    for _ in range(6):
        api.get("/api/jobs", X_Turno_Key="wrong")
    api.get("/api/jobs", X_Turno_Key="wrong").problem(429)
    assert api.get("/api/jobs").status == 200


def test_the_hour_in_which_an_address_is_remembered_begins_anew_with_each_right_key(api, monkeypatch):
    told = {}
    monkeypatch.setattr(throttle.cache, "set", lambda name, value, seconds: told.update({name: (value, seconds)}))
    for _ in range(2):
        told.clear()
        api.get("/api/jobs")
        assert told == {"turno:known:127.0.0.1": (True, throttle.REMEMBERED)}


def test_failures_are_counted_by_address_and_for_ipv6_by_network(db):
    first, second = (Api("wrong", REMOTE_ADDR=address) for address in ("2001:db8::1", "2001:db8:0:0:ffff::2"))
    other = Api("wrong", REMOTE_ADDR="2001:db8:1::1")
    for _ in range(5):
        first.get("/api/jobs")
    second.get("/api/jobs").problem(429)
    other.get("/api/jobs").problem(401)


def test_the_login_and_the_header_share_the_limit(stranger):
    for _ in range(5):
        stranger.get("/api/jobs", X_Turno_Key="wrong")
    assert stranger.client.post("/entrar", {"chave": KEY}).status_code == 429


@pytest.mark.usefixtures("keyless")
def test_without_a_key_the_house_is_open_to_this_machine(db):
    stranger = Api(None, SERVER_NAME="localhost")
    assert stranger.get("/api/jobs").status == 200
    assert stranger.get("/api/info").json["access"] == "open"
    assert stranger.get("/api/info").json["key_required"] is False
    assert stranger.client.get("/painel/", headers=BROWSER).status_code == 200


@pytest.mark.usefixtures("keyless")
@pytest.mark.parametrize(
    "headers", [{"X-Forwarded-For": "10.0.0.1"}, {"X-Forwarded-Host": "x"}, {"X-Forwarded-Proto": "https"},
                {"Forwarded": "for=1.2.3.4"}, {"X-Real-IP": "1.2.3.4"}, {"Via": "1.1 proxy"}],
)  # fmt: skip
def test_a_sign_of_a_proxy_closes_the_open_house_and_says_what_to_configure(stranger, headers):
    stranger.client.defaults["HTTP_HOST"] = "localhost"
    assert stranger.get("/api/jobs").status == 200
    assert "TURNO_API__KEY" in stranger.get("/api/jobs", **headers).problem(403)["detail"]
    assert stranger.get("/api/info", **headers).json["access"] == "closed"


@pytest.mark.usefixtures("keyless")
def test_another_address_or_another_bind_closes_the_open_house(db):
    Api(None, SERVER_NAME="localhost", REMOTE_ADDR="192.168.0.9").get("/api/jobs").problem(403)
    with overridden(web={"bind": "192.168.0.1"}):
        Api(None, SERVER_NAME="localhost").get("/api/jobs").problem(403)


@pytest.mark.usefixtures("keyless")
def test_another_host_name_closes_the_open_house(stranger, settings):
    settings.ALLOWED_HOSTS = ["*"]
    stranger.get("/api/jobs", Host="rebound.example").problem(403)
    for name in ("localhost", "localhost:8080", "127.0.0.1", "127.8.8.8", "[::1]", "[::1]:8080", "turno.localhost"):
        assert stranger.get("/api/jobs", Host=name).status == 200


@pytest.mark.usefixtures("keyless")
def test_a_closed_house_tells_people_what_to_configure(stranger):
    response = stranger.client.get("/painel/", headers=BROWSER | {"X-Forwarded-For": "10.0.0.1", "Host": "localhost"})
    assert response.status_code == 403
    assert b"TURNO_API__KEY" in response.content


@pytest.mark.usefixtures("keyless")
@pytest.mark.parametrize(
    "headers", [{"Origin": "https://evil.example"}, {"Origin": "null"}, {"Sec-Fetch-Site": "cross-site"},
                {"Sec-Fetch-Site": "same-site"}, {"Origin": "http://localhost:81"}],
)  # fmt: skip
def test_a_page_of_another_site_can_do_nothing_in_an_open_house(stranger, headers):
    made = rows.make_job()
    answer = stranger.ask("POST", f"/api/jobs/{made.id}/cancel", Host="localhost", **headers)
    assert "TURNO_API__KEY" not in answer.problem(403)["detail"]
    assert rows.state(made.id) == "Enqueued"


@pytest.mark.usefixtures("keyless")
def test_our_own_page_may_act_in_an_open_house(stranger):
    made = rows.make_job()
    answer = stranger.ask("POST", f"/api/jobs/{made.id}/cancel", Host="localhost", Origin="http://localhost")
    assert answer.status == 200


class Browser(Api):
    """Signed in through the form, with CSRF enforced."""

    def __init__(self):
        super().__init__(None)
        self.client = Client(enforce_csrf_checks=True, raise_request_exception=False)
        self.client.get("/entrar")
        form = {"chave": KEY, "csrfmiddlewaretoken": self.token}
        assert self.client.post("/entrar", form).status_code == 302

    @property
    def token(self):
        return self.client.cookies["turno_csrf"].value


def test_a_session_reads_and_needs_the_token_to_act(db):
    browser, made = Browser(), rows.make_job()
    assert browser.get("/api/jobs").status == 200
    browser.ask("POST", f"/api/jobs/{made.id}/cancel").problem(403)
    browser.ask("POST", f"/api/jobs/{made.id}/cancel", X_CSRFToken="x" * 32).problem(403)
    assert rows.state(made.id) == "Enqueued"
    assert browser.ask("POST", f"/api/jobs/{made.id}/cancel", X_CSRFToken=browser.token).status == 200
    assert rows.job(made.id)["cancel_requested_by"] == "session"


def test_a_session_ends_when_the_key_changes(db):
    browser = Browser()
    with overridden(api={"key": "another-key-entirely"}):
        browser.get("/api/jobs").problem(401)
    assert browser.get("/api/jobs").status == 200


def test_a_session_tells_nothing_of_the_key(db):
    browser = Browser()
    stored = str(dict(browser.client.session.items()))
    assert KEY not in stored
    assert KEY not in str(browser.client.cookies)
    assert access.SESSION_FLAG in stored
