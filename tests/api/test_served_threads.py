"""The threads of the web process: each request is in one, and whatever it was, its connection goes back to the pool."""

import http.client
import json
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import psycopg
import pytest

from jobs.models import Job
from tests.api.served import serving
from tests.kit.processes import database_url
from tests.transitions.rows import make_jobs
from turno.serving import AT_ONCE_APART, BESIDE

pytestmark = pytest.mark.slow

POOL = 2  # so that a connection that is not given back is missed soon
BODY = {"type": "report.generate", "payload": {}}
SCRIPT = "/static/js/page.js"
AT_ONCE = POOL + BESIDE


@pytest.fixture(scope="module")
def process(django_db_setup, django_db_blocker, tmp_path_factory):
    folder = tmp_path_factory.mktemp("threads")
    with (
        django_db_blocker.unblock(),
        serving(folder, TURNO_API__KEY="", TURNO_DATABASE__POOL_SIZE=str(POOL)) as running,
    ):
        yield running


@pytest.fixture
def served(process, clean_tables):
    return process


def got(served, path, method="GET", **headers):
    """The answer, with its body."""
    connection = http.client.HTTPConnection("127.0.0.1", served.port, timeout=60)
    try:
        connection.request(method, path, headers={name.replace("_", "-"): value for name, value in headers.items()})
        answer = connection.getresponse()
        answer.body = answer.read()
        return answer
    finally:
        connection.close()


def test_more_requests_at_once_than_there_are_threads_are_all_answered(served):
    with ThreadPoolExecutor(2 * AT_ONCE) as pool:
        answers = list(pool.map(lambda _: served.post("/api/jobs", BODY)[0], range(2 * AT_ONCE)))
    assert answers == [201] * (2 * AT_ONCE)
    assert Job.objects.count() == 2 * AT_ONCE


@contextmanager
def blocked():
    """Whatever reads jobs waits for as long as this lasts."""
    with psycopg.connect(database_url()) as rival:
        rival.execute("LOCK TABLE turno.jobs IN ACCESS EXCLUSIVE MODE")
        yield
        rival.rollback()


def test_while_all_threads_wait_for_the_database_the_process_says_that_it_lives(served):
    with ThreadPoolExecutor(2 * AT_ONCE) as pool:
        with blocked():
            waiting = [pool.submit(served.ask, "GET", "/api/jobs") for _ in range(2 * AT_ONCE)]
            for _ in range(2 * AT_ONCE_APART):
                assert served.ask("GET", "/health/live")[0] == 200
                assert got(served, SCRIPT).status == 200
            assert not all(one.done() for one in waiting)
        assert {one.result()[0] for one in waiting} <= {200, 503}
    assert served.post("/api/jobs", BODY)[0] == 201


def test_a_request_that_is_refused_or_finds_nothing_gives_its_connection_back(served):
    for _ in range(2 * POOL):
        assert served.post("/api/jobs", {"type": "no.such"})[0] == 400
        assert served.ask("GET", "/api/jobs/00000000-0000-0000-0000-000000000000")[0] == 404
    assert served.post("/api/jobs", BODY)[0] == 201


def test_an_export_is_sent_whole_and_gives_its_connection_back(served):
    make_jobs(3)
    for _ in range(2 * POOL):
        answer = got(served, "/painel/tarefas.csv")
        assert answer.status == 200
        assert len(answer.body.strip().splitlines()) == 4


def test_who_leaves_an_export_in_the_middle_takes_no_connection_along(served):
    make_jobs(2000)
    for _ in range(2 * POOL):
        connection = http.client.HTTPConnection("127.0.0.1", served.port, timeout=60)
        connection.request("GET", "/painel/tarefas.json")
        assert connection.getresponse().read(100).startswith(b'{"items": [')
        connection.close()
    assert served.post("/api/jobs", BODY)[0] == 201


def test_the_language_and_the_zone_of_one_request_are_not_those_of_the_next(served):
    asked = [("en", "This field is required."), ("pt-BR", "Este campo é obrigatório.")] * AT_ONCE

    def refused(language):
        answer = served.ask(
            "POST", "/api/jobs", b"{}", {"Content-Type": "application/json", "Accept-Language": language}
        )
        return json.dumps(answer[2], ensure_ascii=False)

    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(refused, [language for language, _words in asked]))
    assert [words in answer for answer, (_, words) in zip(answers, asked, strict=True)] == [True] * len(asked)


def test_a_static_file_has_its_own_headers_and_those_that_keep_a_browser_safe(served):
    answer = got(served, SCRIPT)
    assert (answer.status, answer.headers["Content-Type"].split(";")[0]) == (200, "text/javascript")
    assert int(answer.headers["Content-Length"]) == len(answer.body) > 100
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert "default-src" in answer.headers["Content-Security-Policy"]
    assert "no-store" not in answer.headers["Cache-Control"]


def test_a_static_file_that_is_known_already_or_asked_for_in_part_is_not_sent_whole(served):
    whole = got(served, SCRIPT)
    known = got(served, SCRIPT, If_None_Match=whole.headers["ETag"])
    part = got(served, SCRIPT, Range="bytes=10-19")
    head = got(served, SCRIPT, method="HEAD")
    assert (known.status, known.body) == (304, b"")
    assert (part.status, part.body) == (206, whole.body[10:20])
    assert (head.status, head.body, head.headers["Content-Length"]) == (200, b"", str(len(whole.body)))
    assert got(served, "/static/js/none.js").status == 404
