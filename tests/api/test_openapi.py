"""The OpenAPI document and the page that shows it."""

import re

import pytest

from jobs.conf import overridden
from tests.api.client import PROBLEM, Api

pytestmark = pytest.mark.django_db


@pytest.fixture
def document(api):
    return api.get("/openapi/v1.json").json


def operations(document):
    return [
        (method, path, operation)
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
    ]


def test_every_route_of_the_core_is_in_it(document):
    assert {(method.upper(), path) for method, path, _ in operations(document)} == {
        ("POST", "/api/jobs"), ("GET", "/api/jobs"), ("POST", "/api/jobs/batch"), ("GET", "/api/jobs/{id}"),
        ("DELETE", "/api/jobs/{id}"), ("GET", "/api/jobs/{id}/logs"), ("POST", "/api/jobs/{id}/cancel"),
        ("POST", "/api/jobs/{id}/requeue"), ("POST", "/api/jobs/{id}/run-now"), ("GET", "/api/stats"),
        ("GET", "/api/promises"),
        ("GET", "/api/workers"), ("GET", "/api/queues"), ("GET", "/api/job-types"), ("GET", "/api/info"),
        ("GET", "/health/live"), ("GET", "/health/ready"),
        ("POST", "/api/jobs/bulk/cancel"), ("POST", "/api/jobs/bulk/requeue"),
        ("POST", "/api/jobs/bulk/delete"), ("GET", "/api/bulk/{id}"), ("POST", "/api/bulk/{id}/stop"),
        ("GET", "/api/dead-letters"), ("POST", "/api/dead-letters/{id}/requeue"), ("DELETE", "/api/dead-letters/{id}"),
        ("POST", "/api/dead-letters/bulk/requeue"), ("POST", "/api/dead-letters/bulk/discard"),
        ("GET", "/api/pauses"), ("POST", "/api/pauses"), ("DELETE", "/api/pauses"),
        ("POST", "/api/queues/{name}/pause"), ("POST", "/api/queues/{name}/resume"), ("PUT", "/api/queues/{name}"),
        ("POST", "/api/job-types/{name}/pause"), ("POST", "/api/job-types/{name}/resume"),
        ("PUT", "/api/job-types/{name}"), ("DELETE", "/api/job-types/{name}/limits"),
        ("POST", "/api/jobs/{id}/priority"),
        ("GET", "/api/recurring-jobs"), ("PUT", "/api/recurring-jobs"), ("GET", "/api/recurring-jobs/preview"),
        ("GET", "/api/recurring-jobs/{id}"), ("DELETE", "/api/recurring-jobs/{id}"),
        ("POST", "/api/recurring-jobs/{id}/trigger"), ("POST", "/api/recurring-jobs/{id}/enable"),
        ("POST", "/api/recurring-jobs/{id}/disable"),
    }  # fmt: skip


def test_every_error_is_declared_as_a_problem(document):
    for method, path, operation in operations(document):
        errors = {status for status in operation["responses"] if int(status) >= 400}
        assert errors >= {"400", "500"}, (method, path)
        for status in errors:
            assert list(operation["responses"][status]["content"]) == [PROBLEM], (method, path, status)


def test_each_route_says_which_key_it_wants(document):
    schemes = document["components"]["securitySchemes"]
    assert schemes["TurnoKey"] == {"type": "apiKey", "in": "header", "name": "X-Turno-Key"}
    for method, path, operation in operations(document):
        is_open = path.startswith("/health") or path == "/api/info"
        assert ("security" not in operation) == is_open, (method, path)


def test_operation_ids_are_unique_and_each_has_a_summary(document):
    ids = [operation["operationId"] for _, _, operation in operations(document)]
    assert len(ids) == len(set(ids))
    assert all(operation["summary"] for _, _, operation in operations(document))


def test_the_body_of_a_job_holds_the_schema_of_each_type(document):
    schemas = document["components"]["schemas"]
    job = schemas["JobIn"]
    assert "report.generate" in job["properties"]["type"]["enum"]
    assert {branch["title"] for branch in job["anyOf"]} == set(job["properties"]["type"]["enum"])
    assert "rows" in schemas["report.generate-payload"]["properties"]


def test_every_reference_in_it_leads_somewhere(document):
    schemas = document["components"]["schemas"]
    for name in re.findall(r"#/components/schemas/([^\"']+)", str(document)):
        assert name in schemas


def test_the_page_loads_nothing_from_elsewhere_and_holds_no_inline_script(api):
    html = api.client.get("/docs", headers={"X-Turno-Key": api.key}).content.decode()
    assert "http" not in re.sub(r'"url": "[^"]*"', "", html)
    scripts = re.findall(r"<script([^>]*)>", html)
    assert all("src=" in script or "application/json" in script for script in scripts)
    assert " style=" not in html
    for source in re.findall(r'(?:src|href)="([^"]+)"', html):
        assert api.client.get(source).status_code == 200


def test_the_pages_can_be_switched_off(api):
    with overridden(api={"docs": False}):
        api.get("/docs").problem(404)
        api.get("/openapi/v1.json").problem(404)


def test_a_browser_without_a_session_is_sent_to_the_login_and_comes_back(db):
    response = Api(None).client.get("/docs?x=1", headers={"Accept": "text/html"})
    assert response.status_code == 302
    assert response["Location"] == "/entrar?next=%2Fdocs%3Fx%3D1"
