"""What a payload's schema marks secret is shown neither in the admin nor by the API."""

from dataclasses import replace

import pytest
from pydantic import BaseModel, SecretStr

from jobs.registry import catalogue
from tests.api.client import Api
from tests.transitions import rows

pytestmark = pytest.mark.django_db


class _Login(BaseModel):
    user: str
    password: SecretStr


class _Hire(BaseModel):
    name: str
    pin: SecretStr | None = None
    login: _Login | None = None


@pytest.fixture
def secret(monkeypatch):
    """A job whose type has secrets, on the first floor of its payload and below it."""
    catalogue.load()
    some = next(iter(catalogue._types.values()))
    monkeypatch.setattr(catalogue, "_types", {"people.hire": replace(some, name="people.hire", payload_model=_Hire)})
    payload = {"name": "Ana", "pin": "hunter2", "login": {"user": "ana.b", "password": "hunter3"}}
    return rows.make_job(type="people.hire", payload=payload).id


def test_the_admin_shows_dots_in_place_of_a_secret(root, secret):
    html = root.get(f"/admin/jobs/job/{secret}/change/").content.decode()
    assert "Ana" in html
    assert "•••" in html
    assert "hunter" not in html


def test_the_api_answers_dots_in_place_of_a_secret(secret):
    payload = Api().get(f"/api/jobs/{secret}").json["payload"]
    assert payload == {"name": "Ana", "pin": "•••", "login": "•••"}


def test_a_schedule_s_payload_is_masked_too(root, secret):
    rows.execute(
        "INSERT INTO turno.recurring_jobs (id, name, type, queue, payload, cron, timezone, source)"
        " SELECT id, 'daily', type, queue, payload, '0 0 * * *', 'UTC', 'manual' FROM turno.jobs"
    )
    html = root.get(f"/admin/jobs/recurringjob/{secret}/change/").content.decode()
    assert "daily" in html
    assert "hunter" not in html
