"""The page of one job: every state, literal text, the way back when it is gone."""

import re
from uuid import uuid4

import pytest
from django.core.cache import cache
from django.test import Client

from dashboard import shared
from jobs.states import Outcome, Waiting
from tests.api.client import KEY
from tests.transitions import rows
from tests.transitions.rows import Sql, ago, ahead

pytestmark = pytest.mark.django_db
EVIL = "<script>window.__x=1</script><img src=x onerror=window.__x=2>"
STACK = """Traceback (most recent call last):
  File "/srv/app/tasks/sync.py", line 41, in run
    page = fetch(params.page)
  File "/srv/app/.venv/lib/python3.13/site-packages/httpx/client.py", line 88, in get
    return self.send(request)
TimeoutError: no answer
"""


@pytest.fixture
def browser():
    cache.clear()
    shared.forget()
    client = Client(headers={"Accept": "text/html", "Accept-Language": "en"})
    client.post("/entrar", {"chave": KEY})
    return client


def page(browser, made, query=""):
    response = browser.get(f"/painel/tarefas/{getattr(made, 'id', made)}{query}")
    return response.status_code, response.content.decode()


def add_attempt(made, ordinal=1, outcome="Failed", started=60, duration=30.0, **columns):
    row = {"job_id": made.id, "ordinal": ordinal, "attempt": ordinal, "counted": True, "dispatch_id": uuid4()}
    row |= {"worker_name": f"worker-{ordinal}", "started_at": ago(started), "duration": duration, "outcome": outcome}
    row |= {"ended_at": ago(started - (duration or 10))} | columns
    values = [str(v) if isinstance(v, Sql) else "%s" for v in row.values()]
    rows.execute(
        f"INSERT INTO turno.job_attempts ({', '.join(row)}) VALUES ({', '.join(values)})",
        *[v for v in row.values() if not isinstance(v, Sql)],
    )


def add_change(made, to_state, reason, **columns):
    row = {"job_id": made.id, "from_state": None, "to_state": to_state, "reason": reason} | columns
    marks = ", ".join(["%s"] * len(row))
    rows.execute(f"INSERT INTO turno.job_state_changes ({', '.join(row)}) VALUES ({marks})", *row.values())


def test_a_running_job_shows_where_it_is_and_who_runs_it(browser):
    made = rows.make_job(
        "Processing", progress=62, stage="Rendering", timeout=600, claimed_at=ago(84), enqueued_at=ago(87)
    )
    status, html = page(browser, made)
    assert status == 200
    for said in ("62%", "Rendering", 'data-since="84"', "10:00", "0:03", "worker-1", "Lease renewed"):
        assert said in html
    assert 'id="f-stop"' in html
    assert re.search(r'id="b-cancel"\s+form="f-stop"\s*>', html)
    assert re.search(r'id="b-requeue"\s+form="f-requeue"\s+aria-disabled="true" title="Only after it finishes"', html)


def test_a_job_without_a_percentage_says_so(browser):
    _, html = page(browser, rows.make_job("Processing"))
    assert "Running, without a percentage so far" in html


def test_a_job_that_waits_for_its_turn_on_its_worker_is_not_shown_as_running(browser):
    _, html = page(browser, rows.make_job("Processing", lost_count=2, started_at=None))
    assert "Not started yet" in html
    assert "Running, without a percentage so far" not in html
    assert "<dt>Started</dt>" not in html


def test_a_cancel_that_waits_for_the_worker_is_shown_with_who_asked_and_why(browser):
    made = rows.make_job(
        "Processing", cancel_requested_at=ago(4), cancel_requested_by="user:ana", cancel_reason="wrong file"
    )
    _, html = page(browser, made)
    for said in ("Cancelling", "Cancel requested.", "ana", "wrong file", "Cancel requested already"):
        assert said in html


def test_a_job_whose_workers_row_is_gone_says_when_it_returns(browser):
    _, html = page(browser, rows.make_job("Processing", lease_expires_at=ahead(12)))
    assert "The worker worker-1 is not registered any more." in html
    assert "The job goes back to the queue in" in html
    assert 'data-until="2' in html


@pytest.mark.parametrize("waiting", Waiting)
def test_every_kind_of_waiting_has_a_page(browser, waiting):
    _, html = page(browser, rows.make_job("Scheduled", waiting_for=str(waiting)))
    assert "Why is it not running?" in html


def test_a_queued_job_says_how_many_are_ahead_and_that_nobody_serves_its_queue(browser):
    rows.make_jobs(3, queue="slow", enqueued_at=ago(100))
    rows.make_job(queue="slow", priority=5)
    made = rows.make_job(queue="slow")
    _, html = page(browser, made)
    assert "4 jobs are ahead of it in the queue." in html
    assert "No live worker serves the queue slow." in html


def test_a_scheduled_job_may_be_run_now_and_no_other(browser):
    assert 'id="b-now"' in page(browser, rows.make_job("Scheduled"))[1]
    assert 'id="b-now"' not in page(browser, rows.make_job("Scheduled", waiting_for="pause"))[1]
    assert 'id="b-now"' not in page(browser, rows.make_job())[1]


def failed_after(attempts):
    made = rows.make_job("Failed", attempts_used=attempts, max_attempts=attempts, executions=attempts)
    for n in range(1, attempts + 1):
        error = {"error_type": "TimeoutError", "error_message": f"no answer {n}", "stack": STACK}
        add_attempt(made, n, started=100 * (attempts + 1 - n), **error)
    return made


def test_a_failed_job_shows_its_last_error_with_the_stack_and_all_attempts(browser):
    made = failed_after(5)
    rows.make_letter(made, fingerprint="cause")
    for _ in range(22):
        rows.make_letter(rows.make_job("Failed"), fingerprint="cause")
    _, html = page(browser, made)
    for said in ("Error of attempt 5", "no answer 5", "tasks/sync.py:41", "1 library frame", "5 of 5", "1 min 10 s"):
        assert said in html
    assert "22 more with the same cause" in html
    assert "/painel/erros?causa=cause" in html
    assert re.search(r'id="b-cancel".{0,80}aria-disabled="true" title="Already finished"', html, re.DOTALL)


def test_an_earlier_attempt_can_be_looked_at(browser):
    _, html = page(browser, failed_after(3), "?tentativa=2")
    assert "Error of attempt 2" in html
    assert "no answer 2" in html
    assert "Log of attempt 2." in html


@pytest.mark.parametrize("outcome", Outcome)
def test_every_outcome_has_a_row(browser, outcome):
    made = rows.make_job("Cancelled", executions=1)
    add_attempt(made, outcome=str(outcome))
    assert 'id="t-1"' in page(browser, made)[1]


def test_how_a_process_ended_and_what_came_late_is_said(browser):
    made = rows.make_job("Failed", executions=2)
    add_attempt(made, 1, "WorkerLost", 500, None, signal=9, peak_memory=512_000_000, discarded_at=ago(450))
    add_attempt(made, 2, "Interrupted", 100, 1.5, exit_code=3, counted=False, tries=3)
    _, html = page(browser, made)
    for said in ("Worker lost", "signal SIGKILL", "512.0 MB", "came back 40.0 s later; result discarded",
                 "Interrupted", "exit code 3", "not counted", "3 tries within it", "1 not counted"):  # fmt: skip
        assert said in html


def test_a_job_that_succeeded_shows_its_result(browser):
    made = rows.make_job("Succeeded", result={"rows": 7}, progress=100, executions=1)
    add_attempt(made, outcome="Succeeded")
    _, html = page(browser, made)
    assert '<span class="k">&quot;rows&quot;</span>: 7' in html
    assert 'title="It has succeeded"' in html


def test_a_cancelled_job_says_who_and_why(browser):
    made = rows.make_job("Cancelled", cancel_requested_by="user:ana", cancel_reason="wrong file")
    _, html = page(browser, made)
    for said in ("Cancelled by ana", "wrong file", "It never ran"):
        assert said in html


def test_a_long_time_line_shows_its_end_and_all_of_it_on_request(browser):
    made = rows.make_job("Failed")
    for n in range(14):
        add_change(made, "Enqueued", "created", detail=f"change-{n}!")
    _, html = page(browser, made)
    assert "Show all 14 changes" in html
    assert "change-13!" in html
    assert "change-7!" not in html
    assert "change-0!" in page(browser, made, "?linha=tudo")[1]


def test_what_jobs_say_is_shown_literally(browser):
    made = rows.make_job(
        "Failed", error_message=EVIL, error_type=EVIL, stage=EVIL, payload={EVIL: EVIL}, result={EVIL: EVIL},
        tags=[EVIL[:90]], origin=EVIL, owner=EVIL, unique_key=EVIL, executions=1,
    )  # fmt: skip
    add_attempt(made, error_type=EVIL, error_message=EVIL, stack=EVIL, worker_name=EVIL)
    add_change(made, "Enqueued", "created", detail=EVIL, actor=EVIL)
    rows.execute("INSERT INTO turno.job_logs (job_id, execution, number, message) VALUES (%s, 1, 1, %s)", made.id, EVIL)
    _, html = page(browser, made)
    assert "<img src=x" not in html
    assert "<script>window" not in html
    assert html.count("&lt;img src=x") >= 12


def test_the_page_holds_no_inline_script_or_style_and_asks_no_other_host(browser):
    _, html = page(browser, failed_after(2))
    assert " style=" not in html
    assert not re.findall(r"<script(?![^>]*(?:src=|type=\"application/json\"))", html)
    assert not re.findall(r'(?:src|href)="(?:https?:)?//', html)


def test_a_job_that_is_not_there_has_a_page_that_says_so_with_the_way_back(browser):
    status, html = page(browser, uuid4())
    assert status == 404
    assert "There is no such job, or not any more" in html
    assert 'href="/painel/tarefas"' in html
    assert browser.get("/painel/tarefas/not-a-uuid").status_code == 404


def test_secret_fields_of_the_type_are_masked(browser, monkeypatch):
    schema = {"properties": {"pin": {"type": "string", "writeOnly": True}}}
    monkeypatch.setattr("dashboard.jobpage.schema_of", lambda _type: schema)
    _, html = page(browser, rows.make_job(payload={"pin": "hunter2", "rows": 3}))
    assert "hunter2" not in html
    assert "••••••" in html


def test_the_page_costs_the_same_queries_however_much_it_shows(browser, django_assert_max_num_queries):
    made = failed_after(50)
    with django_assert_max_num_queries(16):
        page(browser, made)


def test_the_parts_answer_once_and_then_that_nothing_changed(browser):
    made = rows.make_job("Processing", progress=10)
    for part in ("agora", "estado"):
        first = browser.get(f"/painel/partes/tarefas/{made.id}/{part}")
        assert f'id="{part}"' in first.content.decode()
        again = browser.get(f"/painel/partes/tarefas/{made.id}/{part}", headers={"X-Turno-Seen": first["X-Turno-Seen"]})
        assert again.status_code == 204
    for target in ("dados", "linha", "desfecho", "resultado"):
        assert f'hx-target="#{target}"' in first.content.decode()


def test_the_parts_of_a_job_that_is_gone_say_so(browser):
    html = browser.get(f"/painel/partes/tarefas/{uuid4()}/estado").content.decode()
    assert "This job is not there any more." in html
    assert browser.get(f"/painel/partes/tarefas/{uuid4()}/agora").status_code == 200
