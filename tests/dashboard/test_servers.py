"""The Painel about the servers beside PostgreSQL: what it says of each, in the verdict too, and to whom."""

import re
import threading

import pytest
from django.core.cache import cache
from django.test import Client

from dashboard import shared
from jobs import health
from jobs.conf import overridden
from tests.api.client import KEY
from tests.dashboard.boards import make_worker
from tests.queries.house import message
from tests.transitions import rows

pytestmark = pytest.mark.django_db
EVIL = "<script>window.__x=1</script>"
CLUSTER = {
    "messaging": {"transport": "rabbitmq", "urls": ("amqp://turno:hunter2@rabbit-1:5672/",)},
    "redis": {"urls": tuple(f"redis://:hunter2@redis-{n}:6379" for n in (1, 2, 3))},
}


@pytest.fixture
def probes(monkeypatch):
    """A registry of the test's own, in which PostgreSQL is well."""
    monkeypatch.setattr(health, "_probes", {})
    health.register("postgresql", lambda: None)
    return health


@pytest.fixture
def cluster():
    with overridden(**CLUSTER):
        yield


@pytest.fixture
def browser(probes):
    cache.clear()
    shared.forget()
    client = Client(headers={"Accept": "text/html", "Accept-Language": "en"})
    client.post("/entrar", {"chave": KEY})
    yield client
    shared.forget()


def down(name, *told, **more):
    """The probe of this name fails, and has been asked once."""

    def probe():
        raise health.Down(*(told or (health.NO_ANSWER,)), **more)

    health.register(name, probe, needed=False)
    health.check_all()


def page(browser):
    response = browser.get("/painel/")
    assert response.status_code == 200
    return response.content.decode()


def words(html, id_):
    """The words of a region of the page."""
    part = html[html.index(f'id="{id_}"') :]
    return re.sub(
        r"\s+", " ", re.sub(r"<[^>]*>", " ", part[: part.index("</p>" if id_ == "veredito" else "</section>")])
    )


def test_a_broker_that_is_away_is_the_verdict_and_the_page_goes_on(browser, cluster):
    make_worker(problems=[{"part": "broker", "error": f"no connection {EVIL}"}])
    message(rows.make_job(), age=130)
    down("broker", where=["rabbit-1:5672"])
    html = page(browser)
    assert "The broker does not answer: jobs wait" in words(html, "veredito")
    said = words(html, "atencao")
    assert "RabbitMQ does not answer" in said
    assert "rabbit-1:5672 · Seen by: web, worker-7." in said
    assert "1 message waits, the oldest for 2:1" in said
    assert "rabbit-1:5672" in said
    assert "hunter2" not in html
    assert EVIL not in html


def test_many_workers_that_say_the_same_of_a_broker_fill_no_screen(browser, cluster):
    for number in range(12):
        problems = [{"part": "broker", "error": f"away since 04:{10 + number}: no answer in time"}]
        make_worker(name=f"worker-{number:02d}", problems=problems)
    down("broker", where=["rabbit-1:5672"])
    said = words(page(browser), "atencao")
    assert "Seen by: web, worker-00, worker-01, worker-02, worker-03 and 8 more." in said
    assert said.count("no answer in time") == 3


def test_a_broker_that_is_away_is_the_verdict_among_others_too(browser, cluster):
    make_worker()
    make_worker(name="worker-8", problems=[{"part": "processes", "error": "x"}])
    down("broker")
    html = page(browser)
    assert "The broker does not answer: jobs wait" in words(html, "veredito")
    assert "Attention 2" in words(html, "atencao")


def test_several_concerns_are_counted_and_a_lost_quorum_says_what_follows(browser, cluster):
    make_worker(problems=[{"part": "processes", "error": "x"}])
    down("redis", "%(down)s of %(servers)s", where=["redis-2:6379", "redis-3:6379"], down=2, servers=3)
    html = page(browser)
    assert "2 need attention" in words(html, "veredito")
    said = words(html, "atencao")
    assert "Redis has no quorum: 2 of 3 servers do not answer" in said
    assert "Jobs go on, guarded by the database alone." in said
    assert "redis-2:6379, redis-3:6379" in said


def test_one_server_of_three_is_a_warning(browser, cluster):
    make_worker()
    down("redis", "%(down)s", down=1, servers=3, where=["redis-2:6379"])
    html = page(browser)
    assert "#m-paused" in html[html.index('id="veredito"') :][:800]
    assert "1 of 3 Redis servers does not answer" in words(html, "atencao")
    assert "The others are a quorum" in words(html, "atencao")


def test_with_defer_it_is_said_that_no_job_is_started(browser):
    make_worker()
    with overridden(messaging=CLUSTER["messaging"], redis=CLUSTER["redis"] | {"on_failure": "defer"}):
        down("redis", "%(down)s", down=3, servers=3)
        assert "No job is started until there is a quorum" in words(page(browser), "atencao")


def test_a_redis_for_the_screens_alone_leaves_them_live(browser):
    make_worker()
    with overridden(redis={"urls": ("redis://redis-1",)}):
        down("redis", "%(down)s", down=1, servers=1)
        said = words(page(browser), "atencao")
    assert "Redis does not answer" in said
    assert "The screens stay live by PostgreSQL." in said


def test_messages_that_are_refused_and_messages_that_wait(browser, cluster):
    make_worker()
    message(rows.make_job(), age=65)
    assert "1 message waits for the broker" in words(page(browser), "atencao")
    message(rows.make_job(), failures=2, last_error=f"no queue {EVIL}")
    shared.forget()
    html = page(browser)
    assert "The broker does not take 1 message" in words(html, "atencao")
    assert "no queue" in words(html, "atencao")
    assert EVIL not in html


def test_what_the_broker_says_of_a_message_is_told_in_the_readers_language_with_its_queue(browser, cluster, settings):
    """The outbox holds it as the relay wrote it, and people read it in several languages."""
    make_worker()
    message(rows.make_job(queue="reports"), queue="reports", failures=2, last_error="no answer in time")
    assert "reports : no answer in time" in words(page(browser), "atencao").replace("reports:", "reports :")
    browser.cookies[settings.LANGUAGE_COOKIE_NAME] = "pt-br"
    assert "sem resposta a tempo" in words(page(browser), "atencao")


def test_what_workers_say_of_their_parts_is_told_with_their_names(browser):
    for name in ("w-1", "w-2"):
        make_worker(name, problems=[{"part": "processes", "error": "no memory & no luck"}])
    said = words(page(browser), "atencao")
    assert "2 workers report a problem" in said
    assert "no memory &amp; no luck" in said
    assert "w-1, w-2" in said


def test_the_page_waits_for_no_broker(browser, cluster):
    make_worker()
    answer, answered = threading.Event(), threading.Event()

    def probe():
        answer.wait(60)
        answered.set()

    health.register("broker", probe, needed=False)
    page(browser)
    assert not answered.is_set()
    answer.set()
    assert answered.wait(60)


def test_the_page_of_a_job_says_that_it_waits_to_be_announced(browser, cluster):
    make_worker(queues={"default": 4})
    job = rows.make_job()
    message(job, age=7)
    html = browser.get(f"/painel/tarefas/{job.id}").content.decode()
    assert "It waits to be announced to the broker." in html
    message(refused := rows.make_job(), failures=1, last_error=EVIL)
    html = browser.get(f"/painel/tarefas/{refused.id}").content.decode()
    assert "The broker does not take its message" in html
    assert EVIL not in html
