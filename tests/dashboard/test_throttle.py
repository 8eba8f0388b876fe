"""Whom wrong tries are counted against, and that neither many addresses nor many threads get around the count."""

import pytest
from django.core.cache import cache
from django.test import Client, RequestFactory

from jobs import access, throttle
from tests.kit.people import BROWSER, PASSWORD, make_user, sign_in

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _fresh():
    cache.clear()
    yield
    cache.clear()


@pytest.mark.parametrize(
    ("peer", "counted"),
    [
        ("192.0.2.7", "192.0.2.7"),
        ("::ffff:192.0.2.7", "192.0.2.7"),
        ("::FFFF:c000:0207", "192.0.2.7"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::"),
        ("fe80::1%eth0", "fe80::"),
        ("", "local"),
        ("no address at all", "no address at all"),
    ],
)
def test_a_failure_is_counted_against_the_peer_and_for_ipv6_against_its_network(peer, counted):
    assert throttle.address_of(RequestFactory().get("/", REMOTE_ADDR=peer)) == counted


def test_neighbours_behind_a_socket_of_both_families_do_not_lock_each_other_out():
    make_user()
    for _ in range(throttle.FAILURES_A_MINUTE + 1):
        refused = sign_in(Client(headers=BROWSER, REMOTE_ADDR="::ffff:192.0.2.7"), "nobody")
    assert refused.status_code == 429
    assert sign_in(Client(headers=BROWSER, REMOTE_ADDR="::ffff:192.0.2.8")).status_code == 302


def test_wrong_tries_from_very_many_addresses_make_nobody_s_count_forgotten():
    request = RequestFactory().get("/")
    for _ in range(throttle.NAME_FAILURES_A_MINUTE):
        throttle.count(throttle.name_of("ana"))
    for number in range(3000):
        request.META["REMOTE_ADDR"] = f"2001:db8:{number:x}::1"
        throttle.count(throttle.address_of(request))
    assert throttle.wait(throttle.name_of("ana"), throttle.NAME_FAILURES_A_MINUTE)


def test_of_many_tries_at_the_same_moment_no_more_are_compared_than_are_allowed(monkeypatch):
    make_user()
    compared = []
    real = access.auth.authenticate
    monkeypatch.setattr(access.auth, "authenticate", lambda *a, **k: compared.append(1) or real(*a, **k))
    monkeypatch.setattr(throttle, "wait", lambda *_: 0)  # each looked before any of the others had been counted
    browser = Client(headers=BROWSER)
    answers = [sign_in(browser, password="wrong").status_code for _ in range(throttle.FAILURES_A_MINUTE)]
    assert answers == [401] * throttle.FAILURES_A_MINUTE
    assert sign_in(browser, password=PASSWORD).status_code == 429
    assert len(compared) == throttle.FAILURES_A_MINUTE
