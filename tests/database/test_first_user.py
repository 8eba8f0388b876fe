"""`migrate --first-user`: an administrator where nobody is, and nobody where there is one or no password is given."""

from io import StringIO

import pytest
from django.contrib.auth import authenticate, get_user_model
from django.core.management import call_command

from jobs.management.first_user import MADE, PASSWORD
from tests.kit.people import make_user
from turno.launcher import config, screen

pytestmark = pytest.mark.django_db(databases=["default", "direct"], transaction=True)


def migrated(**options):
    out = StringIO()
    call_command("migrate", "--no-input", stdout=out, **options)
    return out.getvalue()


def test_the_first_user_is_an_administrator_with_the_password_that_was_given(monkeypatch):
    monkeypatch.setenv(PASSWORD, "a first password")
    assert MADE in migrated(first_user=True)
    user = authenticate(username="admin", password="a first password")
    assert user.is_superuser
    assert user.is_staff
    assert MADE not in migrated(first_user=True)


@pytest.mark.parametrize("password", ["", None])
def test_without_a_password_nobody_is_made(monkeypatch, password):
    monkeypatch.delenv(PASSWORD, raising=False)
    if password is not None:
        monkeypatch.setenv(PASSWORD, password)
    assert MADE not in migrated(first_user=True)
    assert not get_user_model().objects.exists()


def test_nobody_is_added_to_users_who_are_there_or_without_being_asked_for(monkeypatch):
    monkeypatch.setenv(PASSWORD, "a first password")
    assert MADE not in migrated()
    make_user()
    assert MADE not in migrated(first_user=True)
    assert get_user_model().objects.count() == 1


def test_the_launcher_knows_the_line_and_the_variable():
    assert MADE.startswith(screen.FIRST_USER)
    assert config.PASSWORD == PASSWORD
