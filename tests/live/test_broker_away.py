"""The house while its broker is away: jobs are accepted as ever, it is said everywhere, and afterwards all run."""

import time

import httpx
import pytest

from jobs.conf import conf
from jobs.models import Job
from tests.kit.cluster import join
from tests.kit.processes import database_url, eventually
from tests.kit.site import Site

pytestmark = [pytest.mark.crash, pytest.mark.django_db(transaction=True)]
JOBS = 100


@pytest.fixture
def house(fleet, cluster, tmp_path):
    """A worker and a web process of the cluster; the web process as httpx asks it."""
    join(fleet, cluster).start().wait_ready()
    folder = tmp_path / "web"
    folder.mkdir()
    site = Site(folder, {"TURNO_DATABASE__URL": database_url()} | cluster.env)
    try:
        site.wait_ready()
        with httpx.Client(base_url=site.address, trust_env=False, timeout=60) as client:
            yield client
        assert "Traceback" not in site.log(), site.log()[-4000:]
    finally:
        site.close()


def ready(client):
    """The status of /health/ready, and its probes by name."""
    answer = client.get("/health/ready")
    assert answer.status_code == 200
    return answer.json()["status"], {probe["name"]: probe for probe in answer.json()["probes"]}


def test_without_its_broker_the_house_accepts_jobs_and_says_so_and_then_all_run(house, cluster):
    eventually(lambda: ready(house)[0] == "ready", "all is well")
    cluster.node.kill()
    took = []
    for number in range(JOBS):
        began = time.monotonic()
        assert house.post("/api/jobs", json={"type": "probe.async", "payload": {"key": str(number)}}).status_code == 201
        took.append(time.monotonic() - began)
    assert sorted(took)[JOBS * 95 // 100] < conf().messaging.connect_timeout  # nobody waits for the broker

    eventually(lambda: ready(house)[0] == "degraded", "the health check says degraded")
    _, probes = ready(house)
    assert probes["postgresql"]["ok"]
    assert not probes["broker"]["ok"]
    assert not probes["broker"]["needed"]
    assert house.get("/api/stats").json()["outbox"]["waiting"] == JOBS
    page = house.get("/painel/", headers={"Accept-Language": "en"})
    assert page.status_code == 200
    waiting = house.get("/api/jobs?state=Enqueued").json()["items"][0]["id"]
    eventually(
        lambda: "RabbitMQ does not answer" in house.get("/painel/", headers={"Accept-Language": "en"}).text,
        "the Painel names the broker",
    )
    said = house.get(f"/painel/tarefas/{waiting}", headers={"Accept-Language": "en"}).text
    assert "It waits to be announced to the broker." in said

    cluster.node.start()
    eventually(lambda: Job.objects.filter(state="Succeeded").count() == JOBS, "all run")
    eventually(lambda: ready(house)[0] == "ready", "all is well again")
    assert house.get("/api/stats").json()["outbox"]["waiting"] == 0
