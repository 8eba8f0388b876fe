"""Who enters the admin, by which door, and with which rights."""

import pytest
from django.contrib.auth.models import Permission
from django.test import Client

from jobs.conf import overridden
from tests.api.client import KEY
from tests.kit.people import BROWSER, make_user, sign_in, signed_in

pytestmark = pytest.mark.django_db


def test_a_stranger_is_sent_to_the_house_s_own_login_and_comes_back():
    browser = Client(headers=BROWSER)
    response = browser.get("/admin/jobs/job/?q=x")
    assert response["Location"] == "/entrar?com=usuario&next=%2Fadmin%2Fjobs%2Fjob%2F%3Fq%3Dx"
    assert b"manage.py createsuperuser" in browser.get(response["Location"]).content
    make_user(is_staff=True, is_superuser=True)
    assert sign_in(browser, next="/admin/jobs/job/?q=x")["Location"] == "/admin/jobs/job/?q=x"
    assert browser.get("/admin/jobs/job/?q=x").status_code == 200


@pytest.mark.parametrize("path", ["/admin/login/", "/admin/login/?next=/admin/jobs/job/"])
def test_django_s_own_login_which_nobody_throttles_is_never_shown(path):
    response = Client(headers=BROWSER).get(path)
    assert response["Location"].startswith("/entrar?com=usuario&next=%2Fadmin%2F")
    form = {"username": "ana", "password": "x", "next": "/admin/"}
    assert Client(headers=BROWSER).post(path, form)["Location"].startswith("/entrar")


def test_its_login_leads_nowhere_else(root):
    assert root.get("/admin/login/?next=https://evil.example/")["Location"] == "/admin/"
    assert root.get("/admin/login/?next=//evil.example/")["Location"] == "/admin/"


def test_a_session_by_key_is_asked_for_a_user_and_told_how_to_make_one():
    browser = Client(headers=BROWSER)
    browser.post("/entrar", {"chave": KEY})
    response = browser.get("/admin/", follow=True)
    assert response.redirect_chain == [("/entrar?com=usuario&next=%2Fadmin%2F", 302)]
    assert b"manage.py createsuperuser" in response.content


def test_an_open_house_asks_for_a_user_too():
    with overridden(api={"key": None}):
        response = Client(headers=BROWSER, SERVER_NAME="localhost").get("/admin/", follow=True)
    assert response.redirect_chain[-1][0].startswith("/entrar?com=usuario")
    assert b"manage.py createsuperuser" in response.content


def test_a_user_who_only_looks_is_told_what_is_missing():
    viewer = signed_in()
    for path in ("/admin/", "/admin/login/", "/admin/jobs/job/"):
        response = viewer.get(path)
        assert response.status_code == 403
        assert b"staff status" in response.content


def test_a_program_gets_a_401():
    assert Client().get("/admin/").status_code == 401


def test_signing_out_ends_the_session(root):
    assert root.post("/admin/logout/")["Location"] == "/entrar"
    assert root.get("/admin/").status_code == 302
    assert root.get("/admin/logout/")["Location"].startswith("/entrar")


def test_a_user_with_staff_status_sees_what_their_rights_name():
    clerk = signed_in("clara", is_staff=True)
    assert clerk.get("/admin/").status_code == 200
    assert clerk.get("/admin/jobs/job/").status_code == 403
    from django.contrib.auth import get_user_model

    user = get_user_model().objects.get(username="clara")
    user.user_permissions.add(Permission.objects.get(codename="view_job"))
    assert clerk.get("/admin/jobs/job/").status_code == 200
    assert clerk.get("/admin/jobs/worker/").status_code == 403


def test_only_superusers_see_users(root):
    clerk = signed_in("clara", is_staff=True)
    from django.contrib.auth import get_user_model

    get_user_model().objects.get(username="clara").user_permissions.set(Permission.objects.all())
    for path in ("/admin/auth/user/", "/admin/auth/user/add/", "/admin/auth/group/", "/admin/admin/logentry/"):
        assert clerk.get(path).status_code == 403
        assert root.get(path).status_code == (403 if path.endswith("logentry/add/") else 200)


def test_a_superuser_makes_a_user_who_can_sign_in(root):
    form = {"username": "nova", "usable_password": "true", "password1": "longa-e-rara-9", "password2": "longa-e-rara-9"}
    assert root.post("/admin/auth/user/add/", form).status_code == 302
    assert sign_in(Client(headers=BROWSER), "nova", "longa-e-rara-9").status_code == 302


def test_a_weak_password_is_refused(root):
    form = {"username": "nova", "usable_password": "true", "password1": "12345", "password2": "12345"}
    assert root.post("/admin/auth/user/add/", form).status_code == 200
