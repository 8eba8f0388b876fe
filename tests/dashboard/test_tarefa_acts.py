"""What people do to a job from its page."""

from uuid import uuid4

import pytest
from django.core.cache import cache
from django.test import Client
from django.utils import timezone

from jobs.models import Job
from tests.api.client import KEY
from tests.transitions import rows

pytestmark = pytest.mark.django_db
SCRIPT = {"X-Turno-Act": "1", "Accept": "application/json"}


@pytest.fixture
def browser():
    cache.clear()
    client = Client(headers={"Accept": "text/html", "Accept-Language": "en"})
    client.post("/entrar", {"chave": KEY})
    return client


def post(browser, made, act, **fields):
    response = browser.post(f"/painel/tarefas/{getattr(made, 'id', made)}/{act}", fields, headers=SCRIPT)
    return response.status_code, response.json()


def test_a_waiting_job_is_cancelled_at_once(browser):
    made = rows.make_job()
    status, said = post(browser, made, "cancelar")
    assert (status, said["toast"], rows.state(made.id)) == (200, "1 job cancelled.", "Cancelled")


def test_a_running_job_is_asked_to_stop_with_the_reason(browser):
    made = rows.make_job("Processing")
    status, said = post(browser, made, "cancelar", reason="  wrong file ")
    assert (status, said["toast"]) == (200, "Cancel requested.")
    job = rows.job(made.id)
    assert (job["state"], job["cancel_reason"], job["cancel_requested_by"]) == ("Processing", "wrong file", "session")


def test_a_cancel_that_came_too_late_says_when_the_job_had_ended(browser):
    made = rows.make_job("Succeeded")
    ended = timezone.localtime(Job.objects.get(pk=made.id).finished_at, timezone.get_default_timezone())
    status, said = post(browser, made, "cancelar")
    assert (status, said["title"]) == (409, "Not cancelled.")
    assert said["detail"] == f"The job had already finished at {ended:%H:%M:%S}."


def test_a_failed_job_is_requeued(browser):
    made = rows.make_job("Failed")
    status, said = post(browser, made, "reenfileirar")
    assert (status, said["toast"], rows.state(made.id)) == (200, "1 job requeued.", "Enqueued")
    assert said["link"]["href"] == f"/painel/tarefas/{made.id}"


def test_a_scheduled_job_is_run_now(browser):
    made = rows.make_job("Scheduled")
    assert post(browser, made, "executar-agora")[0] == 200
    assert rows.state(made.id) == "Enqueued"


def test_a_finished_job_is_deleted_and_the_page_leads_back_to_the_list(browser):
    made = rows.make_job("Succeeded")
    status, said = post(browser, made, "excluir")
    assert (status, said["go"], rows.state(made.id)) == (200, "/painel/tarefas", None)
    assert post(browser, made, "excluir")[0] == 404


@pytest.mark.parametrize(
    ("act", "state"),
    [("cancelar", "Failed"), ("reenfileirar", "Processing"), ("executar-agora", "Enqueued"), ("excluir", "Processing")],
)
def test_what_does_not_apply_is_refused_and_changes_nothing(browser, act, state):
    made = rows.make_job(state)
    status, said = post(browser, made, act)
    assert (status, said["state"], rows.state(made.id)) == (409, state, state)


@pytest.mark.parametrize("act", ["cancelar", "reenfileirar", "executar-agora", "excluir"])
def test_acts_take_a_post_with_a_token_by_somebody_who_is_in(browser, act):
    made = rows.make_job()
    path = f"/painel/tarefas/{made.id}/{act}"
    assert browser.get(path).status_code == 405
    assert post(browser, uuid4(), act)[0] == 404
    strict = Client(enforce_csrf_checks=True, headers=SCRIPT)
    strict.cookies = browser.cookies
    assert strict.post(path).status_code == 403
    assert Client(headers=SCRIPT).post(path).status_code in {401, 403}
    assert rows.state(made.id) == "Enqueued"


def test_without_a_script_an_act_leads_back_to_the_page(browser):
    made = rows.make_job("Failed")
    path = f"/painel/tarefas/{made.id}"
    assert browser.post(f"{path}/reenfileirar", {"next": path})["Location"] == path
