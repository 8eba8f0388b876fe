"""The whole house behind a PgBouncer in transaction mode: four workers, a thousand jobs, somebody who watches."""

from collections import Counter

import pytest
from playwright.sync_api import expect

from jobs.models import Job
from tests.kit.pgbouncer import running_pgbouncer
from tests.kit.processes import database_url, eventually

KINDS = ("probe.async", "probe.thread", "probe.process", "probe.orm_async", "probe.orm_thread")
SCREENS = ("/painel/tarefas", "/painel/workers", "/painel/erros", "/painel/")


@pytest.fixture
def bouncer(clean_tables):
    with running_pgbouncer(database_url(), default_pool_size="5") as running:
        yield running


@pytest.fixture
def site_behind(bouncer, site_with):
    site = site_with(TURNO_DATABASE__URL=bouncer.url, TURNO_DATABASE__DIRECT_URL=database_url())
    yield site
    site.close()  # nobody else can use it: its bouncer ends


def test_a_thousand_jobs_pass_a_pool_of_five_while_the_dashboard_is_open(fleet, bouncer, site_behind, open_page):
    fleet.env |= {"TURNO_DATABASE__URL": bouncer.url, "TURNO_DATABASE__DIRECT_URL": database_url()}
    workers = [fleet.start(f"w{n}", "default:5") for n in range(4)]
    for worker in workers:
        worker.wait_ready()
    page = open_page(site_behind, locale="en")
    page.goto("/painel/")
    expect(page.locator("html")).to_have_attribute("data-hub", "on")
    expect(page.locator("#quadro [data-name]")).to_have_count(4)
    for batch in range(5):
        jobs = [{"type": KINDS[n % 5], "payload": {"key": f"{batch}-{n}", "hold": 0.01}} for n in range(200)]
        answer = page.request.post("/api/jobs/batch", data={"jobs": jobs})
        assert answer.ok, answer.text()
    for path in SCREENS:
        page.goto(path)
        expect(page.locator("html")).to_have_attribute("data-hub", "on")
    eventually(lambda: not Job.objects.exclude(state="Succeeded").exists(), "all have succeeded", 180)
    assert Job.objects.count() == 1000
    starts = Counter(parts[1] for parts in fleet.starts())
    assert (len(starts), set(starts.values())) == (1000, {1})
    eventually(lambda: bouncer.pool()["cl_waiting"] == 0, "no client waits for a session")
    for said in (bouncer.log, site_behind.log(), *(worker.log.read_text() for worker in workers)):
        assert "prepared statement" not in said
    for worker in workers:
        assert not [event for event in worker.events() if event["level"] in {"error", "warning"}]
        assert worker.process.poll() is None
