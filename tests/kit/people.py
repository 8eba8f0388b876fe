"""Users of the tests, and browsers that they have signed in with."""

from typing import Any

from django.contrib.auth import get_user_model
from django.contrib.auth.hashers import PBKDF2PasswordHasher
from django.test import Client

PASSWORD = "uma senha de teste, longa"
BROWSER = {"Accept": "text/html"}


def make_user(name: str = "ana", password: str = PASSWORD, **fields: Any) -> Any:
    """A viewer; `is_staff=True` an operator, `is_superuser=True` an administrator."""
    return get_user_model().objects.create_user(name, password=password, **fields)


def sign_in(client: Client, name: str = "ana", password: str = PASSWORD, **form: str) -> Any:
    """Post the login's form; with CSRF enforced its token is sent along."""
    if client.handler.enforce_csrf_checks:
        client.get("/entrar?com=usuario")
        form["csrfmiddlewaretoken"] = token(client)
    return client.post("/entrar", {"com": "usuario", "usuario": name, "senha": password, **form})


def token(client: Client) -> str:
    """The CSRF token that this browser holds."""
    return client.cookies["turno_csrf"].value


def signed_in(name: str = "ana", *, strict: bool = False, **fields: Any) -> Client:
    """A browser in which a new user has signed in."""
    make_user(name, **fields)
    client = Client(enforce_csrf_checks=strict, headers=BROWSER, raise_request_exception=False)
    assert sign_in(client, name).status_code == 302
    return client


def make_real_user(name: str = "ana", **fields: Any) -> Any:
    """A user whose password a web process with the product's own hashers knows."""
    user = make_user(name, **fields)
    user.password = PBKDF2PasswordHasher().encode(PASSWORD, "salt-of-the-tests", iterations=1000)
    user.save()
    return user
