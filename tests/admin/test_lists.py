"""Every table in the admin: read and not written, literally, and by pages that cost the same however large it is."""

import re

import pytest
from django.apps import apps
from django.db import connection
from django.test.utils import CaptureQueriesContext

from jobs.admin import site
from jobs.models import Job
from tests.transitions import rows

pytestmark = pytest.mark.django_db
OURS = sorted(apps.get_app_config("jobs").get_models(), key=lambda model: model.__name__)
EVIL = "<script>window.__x=1</script><img src=x onerror=window.__x=2>\"'{{ 7|add:7 }}"
ID = "01890a5d-ac96-774b-bcce-b302099a8057"


def listed(model):
    return f"/admin/jobs/{model._meta.model_name}/"


def test_every_table_is_registered():
    assert {model for model in OURS if model not in site._registry} == set()


@pytest.mark.parametrize("model", OURS, ids=lambda model: model.__name__)
def test_a_table_can_be_read_and_not_written(root, model):
    assert root.get(listed(model)).status_code == 200
    assert root.get(listed(model) + "add/").status_code == 403
    made = site._registry[model]
    request = root.get("/admin/").wsgi_request
    assert not made.has_change_permission(request)
    assert not made.has_delete_permission(request)
    assert "delete_selected" not in made.get_actions(request)


def test_a_job_is_not_changed_by_a_post_of_its_form(root):
    made = rows.make_job("Failed")
    before = rows.job(made.id)
    form = root.post(f"/admin/jobs/job/{made.id}/change/", {"state": "Succeeded", "_save": "x"})
    assert form.status_code == 403
    assert root.post(f"/admin/jobs/job/{made.id}/delete/", {"post": "yes"}).status_code == 403
    assert rows.job(made.id) == before


def evil_job():
    return rows.make_job(
        "Failed", payload={EVIL: EVIL}, result={"r": EVIL}, error_type=EVIL, error_message=EVIL, unique_key=EVIL,
        stage=EVIL, origin=EVIL, owner=EVIL, tags=[EVIL], cancel_reason=EVIL, cancel_requested_by=EVIL,
        worker_label={"name": EVIL},
    )  # fmt: skip


def evil_rows(job):
    rows.execute(
        "INSERT INTO turno.job_logs (job_id, execution, number, level, message) VALUES (%s, 1, 1, 'info', %s)",
        job,
        EVIL,
    )
    rows.execute(
        "INSERT INTO turno.job_state_changes (job_id, to_state, reason, detail, actor)"
        " VALUES (%s, 'Enqueued', %s, %s, %s)",
        job, EVIL, EVIL, EVIL,
    )  # fmt: skip
    rows.execute(
        "INSERT INTO turno.job_attempts (job_id, ordinal, attempt, counted, dispatch_id, worker_name, worker_host,"
        " started_at, ended_at, outcome, error_type, error_message, stack)"
        " VALUES (%s, 1, 1, true, gen_random_uuid(), %s, %s, now(), now(), 'Failed', %s, %s, %s)",
        job, EVIL, EVIL, EVIL, EVIL, EVIL,
    )  # fmt: skip
    rows.execute(
        "INSERT INTO turno.dead_letters (id, job_id, type, queue, failure_kind, error_type, error_message, stack,"
        " fingerprint, attempts) VALUES (gen_random_uuid(), %s, 't', 'q', 'error', %s, %s, %s, %s, 1)",
        job, EVIL, EVIL, EVIL, EVIL,
    )  # fmt: skip
    rows.execute(
        "INSERT INTO turno.pauses (scope, value, reason, paused_by) VALUES ('tag', %s, %s, %s)", EVIL, EVIL, EVIL
    )
    rows.execute(
        "INSERT INTO turno.workers"
        " (id, name, host, boot_id, pid_namespace, pid, pid_started, version, queues, problems)"
        " VALUES (gen_random_uuid(), %s, %s, 'b', 'n', 1, %s, %s, '{}', jsonb_build_array(%s::text))",
        EVIL, EVIL, EVIL, EVIL, EVIL,
    )  # fmt: skip


def literal(response):
    html = response.content.decode()
    assert response.status_code == 200
    assert "<script>window" not in html
    assert "<img src=x" not in html
    assert "{{ 7|add:7 }}" in html or "14" not in html
    return html


@pytest.mark.parametrize("name", ["job", "joblog", "jobstatechange", "jobattempt", "deadletter", "pause", "worker"])
def test_what_looks_like_markup_is_shown_literally_in_list_and_form(root, name):
    evil_rows(evil_job().id)
    html = literal(root.get(f"/admin/jobs/{name}/"))
    assert "&lt;script&gt;window.__x=1" in html
    change = re.search(rf"/admin/jobs/{name}/[^/\"]+/change/", html)[0]
    assert "&lt;script&gt;window.__x=1" in literal(root.get(change))


@pytest.mark.parametrize("depth", [64])
def test_a_large_and_deep_payload_is_shown(root, depth):
    deep = "x" * (256 * 1024)
    for _ in range(depth):
        deep = {"a": [deep]} if depth % 2 else [deep]
    made = rows.make_job(payload={"deep": deep, "wide": [[0]] * 30_000})
    response = root.get(f"/admin/jobs/job/{made.id}/change/")
    assert response.status_code == 200
    assert b"x" * 1000 in response.content
    assert len(response.content) < 2_000_000
    assert len(root.get("/admin/jobs/job/").content) < 200_000


def test_a_small_payload_is_indented(root):
    made = rows.make_job(payload={"a": {"b": "é"}})
    assert (
        "  &quot;a&quot;: {\n    &quot;b&quot;: &quot;é&quot;"
        in root.get(f"/admin/jobs/job/{made.id}/change/").content.decode()
    )


def test_instants_have_their_zone(root):
    made = rows.make_job("Failed")
    root.cookies["turno_fuso"] = "America/Sao_Paulo"
    for path in ("/admin/jobs/job/", f"/admin/jobs/job/{made.id}/change/"):
        html = root.get(path).content.decode()
        assert re.search(r'<time datetime="[^"]+\+00:00" title="[^"]+Z">[-0-9]+ [:0-9]+ -03</time>', html)


@pytest.mark.parametrize("search", ["the-key", "test.found", "found-queue", "id"])
def test_a_search_finds_by_id_type_queue_or_key_and_nothing_by_a_part(root, search):
    found = rows.make_job(type="test.found", queue="found-queue", unique_key="the-key")
    rows.make_job()
    term = str(found.id) if search == "id" else search
    html = root.get("/admin/jobs/job/", {"q": term}).content.decode()
    assert html.count("/change/?") + html.count('/change/"') == 1
    assert str(found.id) in html
    assert str(found.id) not in root.get("/admin/jobs/job/", {"q": term[:-1]}).content.decode()


@pytest.mark.parametrize("search", ["%", "_", "\\", "'", "(", "x" * 10_000, "😀", "a b", "--", "'; DROP TABLE x"])
def test_a_strange_search_finds_nothing(root, search):
    rows.make_job(unique_key="abc")
    for name in ("job", "jobattempt", "deadletter"):
        assert root.get(f"/admin/jobs/{name}/", {"q": search}).status_code == 200


@pytest.mark.parametrize(
    "query",
    ["p=0", "p=-5", "p=99999999999999999999", "p=abc", "o=1.-2", "o=x", "all=", "q=%FF", "e=1", "state=nonsense",
     "type=%27", "_facets", "_popup=1"],
)  # fmt: skip
def test_no_address_of_a_list_is_an_error_of_ours(root, query):
    rows.make_job()
    assert root.get(f"/admin/jobs/job/?{query}").status_code in {200, 302, 400}


@pytest.mark.parametrize(
    "query",
    ["payload__a=1", "error_message__icontains=x", "id__in=1", "state__regex=(a+)+$", "x=1", "job__id__exact=1"],
)
def test_nobody_filters_by_what_has_no_index(root, query):
    assert root.get(f"/admin/jobs/job/?{query}").status_code == 400


def test_the_rows_of_one_job_are_a_click_away(root):
    made, other = rows.make_job("Succeeded"), rows.make_job("Succeeded")
    for job in (made, other):
        evil_rows_of = (
            "INSERT INTO turno.job_logs (job_id, execution, number, level, message) VALUES (%s, 1, 1, 'info', %s)"
        )
        rows.execute(evil_rows_of, job.id, f"line of {job.id}")
    html = root.get(f"/admin/jobs/job/{made.id}/change/").content.decode()
    link = f"/admin/jobs/joblog/?job={made.id}"
    assert link in html
    lines = root.get(link).content.decode()
    assert f"line of {made.id}" in lines
    assert f"line of {other.id}" not in lines
    assert root.get("/admin/jobs/joblog/?job=nonsense").status_code == 200


@pytest.mark.parametrize("id_", ["nonsense", ID, "1", "_00", "%2e%2e"])
def test_a_row_that_is_not_there_leads_back(root, id_):
    assert root.get(f"/admin/jobs/job/{id_}/change/").status_code in {302, 404}


def plans(statements):
    with connection.cursor() as cursor:
        for statement in statements:
            cursor.execute("EXPLAIN " + statement)
            yield statement, "\n".join(line for (line,) in cursor.fetchall())


@pytest.fixture
def many(db):
    """50,000 jobs, most of them succeeded, and fresh statistics: enough for a planner to shun the table."""
    rows.make_jobs(47_000, "Succeeded", id=rows.Sql("gen_random_uuid()"), unique_key=rows.Sql("'key-' || n"))
    rows.make_jobs(3_000, "Failed", id=rows.Sql("gen_random_uuid()"))
    rows.execute("ANALYZE turno.jobs")


@pytest.mark.slow
@pytest.mark.usefixtures("many")
def test_at_50_000_jobs_no_list_counts_or_scans_them(root):
    one = Job.objects.order_by("-id").first()
    paths = ["/admin/jobs/job/", "/admin/jobs/job/?p=3", "/admin/jobs/job/?state=Failed",
             "/admin/jobs/job/?state=Succeeded",
             "/admin/jobs/job/?type=test.echo", f"/admin/jobs/job/?q={one.id}", "/admin/jobs/job/?q=key-77",
             "/admin/jobs/job/?q=test.echo", "/admin/jobs/job/?q=nothing-at-all", f"/admin/jobs/job/{one.id}/change/",
             "/admin/", "/admin/jobs/"]  # fmt: skip
    for path in paths:
        with CaptureQueriesContext(
            connection,
        ) as seen:
            response = root.get(path)
        assert response.status_code == 200
        of_jobs = [query["sql"] for query in seen if '"turno"."jobs"' in query["sql"]]
        assert len(seen) < 14, (path, len(seen))
        assert not [sql for sql in of_jobs if "COUNT(" in sql.upper()], path
        for sql, plan in plans(of_jobs):
            assert "Seq Scan on jobs" not in plan, (path, sql, plan)
            assert "Sort" not in plan or "?q=" in path, (path, sql, plan)


def test_a_list_costs_as_many_statements_however_many_rows_it_has(root):
    def cost():
        with CaptureQueriesContext(connection) as seen:
            root.get("/admin/jobs/deadletter/")
        return len(seen)

    def letters(count):
        for _ in range(count):
            rows.execute(
                "INSERT INTO turno.dead_letters (id, job_id, type, queue, failure_kind, fingerprint, attempts)"
                " VALUES (gen_random_uuid(), %s, 't', 'q', 'error', 'f', 1)", rows.make_job("Failed").id,
            )  # fmt: skip

    letters(1)
    few = cost()
    letters(30)
    assert cost() == few
