"""Every address of the house, found by walking the urlconf: nothing for strangers and forged posts, no act for viewers.

A new address is in these tests by being there. What is open to strangers is named here, one by one.
"""

import re

import pytest
from django.core.cache import cache
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver, resolve
from django.urls.resolvers import RegexPattern

from jobs.registry import catalogue
from tests.api.client import KEY
from tests.kit.people import BROWSER, signed_in, token

pytestmark = [pytest.mark.slow, pytest.mark.django_db]
ID = "01890a5d-ac96-774b-bcce-b302099a8057"
FINGERPRINT = "0123456789abcdef" * 4
LOGIN = "/entrar"
OPEN = {"/api/info", "/health/live", "/health/ready", LOGIN}
# What a browser that is not signed in may change: its own language and zone, in cookies, and that it is signed in.
OWN = {"/sair", "/painel/idioma", "/painel/fuso"}
# Addresses that only lead on to another one.
SIGNPOSTS = {"/", "/admin", "/admin/login/"}
METHODS = ["GET", "POST", "PUT", "PATCH", "DELETE"]
REFUSED = {401, 403, 405}


def plain(pattern):
    """An address that the pattern takes; `test_each_address_found_is_one_that_is_served` holds it to that."""
    text = str(pattern)
    if isinstance(pattern, RegexPattern):
        text = re.sub(r"\(\?P<app_label>([^|)]+).*?\)", r"\1", text)
        text = re.sub(r"\(\?P<url>.*?\)", "anything", text)
        return re.sub(r"\(\?P<\w+>.*?\)", FINGERPRINT, text).strip("^$").replace("\\Z", "")
    return re.sub(r"<[^>]+>", ID, text)


def addresses(patterns, prefix="/"):
    for pattern in patterns:
        path = prefix + plain(pattern.pattern)
        if isinstance(pattern, URLResolver):
            yield from addresses(pattern.url_patterns, path)
        elif isinstance(pattern, URLPattern):
            yield path


ALL = sorted({*addresses(get_resolver().url_patterns)} | {"/admin/jobs/", "/static/../manage.py"})
GUARDED = [path for path in ALL if path not in OPEN | OWN]
PAGES = [
    path for path in GUARDED if not path.startswith(("/api", "/openapi", "/health", "/metrics", "/admin", "/docs"))
]


@pytest.fixture(autouse=True)
def _fresh():
    cache.clear()
    catalogue.load()


def ask(client, method, path, **options):
    return client.generic(method, path, b"{}", "application/json", follow=False, **options)


def ended(client, method, path, **options):
    """The answer, redirects followed."""
    response = ask(client, method, path, **options)
    for _ in range(4):
        if response.status_code not in {301, 302}:
            break
        path = response["Location"]
        if path.startswith(LOGIN):
            break
        response = ask(client, "GET", path, **options)
    return response


def test_the_walk_finds_every_part_of_the_house():
    assert len(ALL) > 60
    for path in ("/painel/", "/api/jobs", f"/api/jobs/{ID}/cancel", "/openapi/v1.json", "/docs", "/admin/",
                 "/admin/jobs/job/", f"/admin/jobs/job/{ID}/change/", "/entrar", "/sair"):  # fmt: skip
        assert path in ALL


def test_each_address_found_is_one_that_is_served():
    for path in ALL:
        if ".." not in path:
            assert resolve(path)


@pytest.mark.parametrize("path", GUARDED)
def test_a_stranger_gets_nothing_from_any_address(path):
    client = Client(raise_request_exception=False)
    for method in METHODS:
        for headers in ({}, BROWSER):
            response = ended(client, method, path, headers=headers)
            if response.status_code == 302:
                assert response["Location"].startswith(LOGIN)
            else:
                assert response.status_code in REFUSED | ({404} if ".." in path else set()), (method, response)


@pytest.mark.parametrize("path", sorted(OPEN))
def test_what_is_open_answers(path):
    assert Client().get(path).status_code == 200


@pytest.mark.parametrize("path", [path for path in ALL if path not in OPEN - {LOGIN}])
def test_no_post_of_a_session_is_taken_without_its_token(path):
    for client in (signed_in(strict=True, is_superuser=True, is_staff=True), by_key()):
        for sent in ({}, {"X-CSRFToken": "x" * 64}):
            response = ask(client, "POST", path, headers=sent)
            assert response.status_code in {403, 404, 405}, response.content[:300]


def by_key():
    client = Client(enforce_csrf_checks=True, headers=BROWSER, raise_request_exception=False)
    client.get(LOGIN)
    assert client.post(LOGIN, {"chave": KEY, "csrfmiddlewaretoken": token(client)}).status_code == 302
    return client


@pytest.mark.parametrize("path", sorted({*GUARDED} - SIGNPOSTS))
def test_a_user_who_only_looks_can_do_nothing(path):
    viewer = signed_in(strict=True)
    for method in ("POST", "PUT", "PATCH", "DELETE"):
        response = ask(viewer, method, path, headers={"X-CSRFToken": token(viewer)})
        assert response.status_code in {403, 404, 405}, (method, response.content[:300])


@pytest.mark.parametrize("path", PAGES)
def test_a_user_who_only_looks_may_look(path):
    assert ask(signed_in(), "GET", path).status_code in {200, 204, 302, 400, 404, 405}
