"""The web process behind a PgBouncer: whatever happens to its connections, the next request is answered."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import psycopg
import pytest

from jobs.models import Job
from tests.api.served import serving
from tests.crash.test_connections import terminate
from tests.kit.processes import database_url, eventually

pytestmark = pytest.mark.crash
BODY = {"type": "report.generate", "payload": {}}


@pytest.fixture
def serve(tmp_path):
    """`serve(bouncer)`: a web process behind it."""
    with ExitStack() as stack:
        yield lambda bouncer, **environment: stack.enter_context(
            serving(
                tmp_path,
                TURNO_DATABASE__URL=bouncer.url,
                TURNO_DATABASE__DIRECT_URL=database_url(),
                **environment,
            )
        )


def posts(served, times=8):
    return [served.post("/api/jobs", BODY)[0] for _ in range(times)]


def test_jobs_are_accepted_at_the_first_try_after_its_sessions_were_ended_and_after_a_restart(bouncer, serve):
    served = serve(bouncer)
    assert posts(served) == [201] * 8
    terminate()
    assert posts(served) == [201] * 8
    bouncer.stop()
    bouncer.start()
    assert posts(served) == [201] * 8
    bouncer.kill()
    status, headers, _ = served.post("/api/jobs", BODY)
    assert (status, int(headers["retry-after"]) > 0) == (503, True)
    bouncer.start()
    eventually(lambda: served.post("/api/jobs", BODY)[0] == 201, "jobs are accepted again")
    assert Job.objects.count() == 25


def test_a_bouncer_without_room_is_a_503_and_nothing_is_half_accepted(bouncer_of, serve):
    bouncer = bouncer_of(max_client_conn="8")
    crowd = [psycopg.connect(bouncer.url) for _ in range(8)]
    served = serve(bouncer, TURNO_DATABASE__CONNECT_TIMEOUT="2s")
    assert served.post("/api/jobs", BODY)[0] == 503
    for one in crowd:
        one.close()
    eventually(lambda: served.post("/api/jobs", BODY)[0] == 201, "jobs are accepted again")
    assert Job.objects.count() == 1


def test_a_paused_bouncer_keeps_a_request_waiting_and_loses_nothing(bouncer, serve):
    served = serve(bouncer)
    assert posts(served, 1) == [201]
    assert served.ask("GET", "/health/ready")[0] == 200
    bouncer.tell("PAUSE")
    with ThreadPoolExecutor(4) as pool:
        answers = [pool.submit(served.post, "/api/jobs", BODY) for _ in range(4)]
        eventually(lambda: bouncer.pool()["cl_waiting"] > 0, "a request waits for a session")
        bouncer.tell("RESUME")
        assert {answer.result(60)[0] for answer in answers} == {201}
    assert Job.objects.count() == 5
