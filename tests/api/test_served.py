"""The web process as it is shipped: daphne, with its pool of connections."""

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest
from django.db import connection

from tests.api.client import KEY, PROBLEM
from tests.api.served import free_port, serving
from tests.transitions import rows

pytestmark = pytest.mark.slow

BODY = {"type": "report.generate", "payload": {}}
SPELLINGS = ("Idempotency-Key", "idempotency-key", "IDEMPOTENCY-KEY")


@pytest.fixture(scope="module")
def process(django_db_setup, django_db_blocker, tmp_path_factory):
    with django_db_blocker.unblock(), serving(tmp_path_factory.mktemp("served")) as running:
        yield running


@pytest.fixture
def served(process, clean_tables):
    return process


def test_fifty_requests_with_one_key_at_once_make_one_job(served):
    barrier = Barrier(50)

    def post(number):
        barrier.wait(60)
        return served.post("/api/jobs", BODY, **{SPELLINGS[number % 3]: "K"})

    with ThreadPoolExecutor(50) as pool:
        answers = list(pool.map(post, range(50)))
    assert {status for status, _, _ in answers} <= {200, 201, 409}
    assert sorted(status for status, _, _ in answers).count(201) == 1
    assert len({job["id"] for status, _, job in answers if status != 409}) == 1
    assert all(headers["idempotent-replayed"] == "true" for status, headers, _ in answers if status == 200)
    assert len(rows.select("SELECT 1 FROM turno.jobs")) == 1


def test_connections_that_were_cut_are_replaced_before_anybody_notices(served):
    assert served.post("/api/jobs", BODY)[0] == 201
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity "
            "WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
    assert [served.post("/api/jobs", BODY)[0] for _ in range(12)] == [201] * 12


def test_a_body_without_an_announced_length_is_bounded_too(served):
    def chunks():
        yield b'{"type": "report.generate", "payload": {"title": "'
        for _ in range(5 * 16):
            yield b"a" * 65536
        yield b'"}}'

    status, headers, _ = served.ask("POST", "/api/jobs", chunks(), {"Content-Type": "application/json"})
    assert status == 413
    assert headers["content-type"] == PROBLEM


@pytest.mark.parametrize("parameters", ["charset*=bogus''utf-8", "; ".join(f"a{number}=1" for number in range(1500))])
def test_a_content_type_that_cannot_be_read_counts_as_none(served, parameters):
    content_type = {"Content-Type": f"application/json; {parameters}"}
    status, headers, _ = served.ask("POST", "/api/jobs", b"{}", content_type)
    assert status == 415
    assert headers["content-type"] == PROBLEM
    assert served.ask("GET", "/api/jobs", None, content_type)[0] == 200


def test_head_answers_with_the_headers_alone(served):
    status, headers, body = served.ask("HEAD", "/health/live")
    assert (status, body) == (200, None)
    assert int(headers["content-length"]) > 0


@pytest.mark.parametrize(
    ("path", "key"), [("/hubs/nothing", KEY), ("/", KEY), ("/hubs/jobs", ""), ("/hubs/painel", KEY)]
)
def test_a_websocket_where_none_is_or_without_leave_is_refused_quietly(served, path, key):
    handshake = {
        "Connection": "Upgrade",
        "Upgrade": "websocket",
        "Sec-WebSocket-Version": "13",
        "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
        "X-Turno-Key": key,
    }
    assert served.ask("GET", path, None, handshake)[0] == 403


def test_a_job_is_posted_and_read_and_sigterm_ends_the_process(served):
    status, headers, job = served.post("/api/jobs", BODY)
    assert status == 201
    assert served.ask("GET", headers["location"])[2]["id"] == job["id"]
    assert served.ask("GET", "/health/ready")[0] == 200
    served.process.terminate()
    assert served.process.wait(60) == 0


def test_a_database_that_is_away_is_a_503_everywhere_and_a_live_process(clean_tables, tmp_path):
    away = f"postgresql://nobody:secretword@127.0.0.1:{free_port()}/nothing"
    with serving(tmp_path, TURNO_DATABASE__URL=away, TURNO_DATABASE__CONNECT_TIMEOUT="500ms") as served:
        assert served.ask("GET", "/health/live")[0] == 200
        for method, path in (
            ("GET", "/health/ready"),
            ("GET", "/api/jobs"),
            ("GET", "/api/workers"),
            ("GET", "/api/stats"),
        ):
            status, headers, problem = served.ask(method, path)
            assert (status, headers["content-type"]) == (503, PROBLEM)
            assert int(headers["retry-after"]) > 0
            assert "secretword" not in str(problem)
        status, headers, _ = served.post("/api/jobs", BODY)
        assert (status, headers["content-type"]) == (503, PROBLEM)
