"""The real screens keep the rules of regions: each is fetched, answered, and swapped without being replaced."""

import pytest
from playwright.sync_api import expect

import tests.kit.handlers  # noqa: F401  (the types that are enqueued here)
from jobs.enqueue import enqueue
from tests.kit.look import started, wait_state
from tests.kit.processes import eventually

SCREENS = ["/painel/", "/painel/tarefas", "/painel/workers", "/painel/erros", "/painel/tarefas/{job}"]
REGIONS = """() => [...document.querySelectorAll("[data-live][hx-get]")].map((region) => {
    region.probe = true;
    const names = ["hx-get", "hx-trigger", "hx-swap", "data-live"];
    return [region.id, ...names.map((name) => region.getAttribute(name))];
})"""
KEPT = """(ids) => ids.map((id) => [id, document.getElementById(id)?.probe === true,
    "stale" in document.getElementById(id)?.dataset])"""
TOPICS = {"jobs", "workers", "letters", "queues", "promises"}


@pytest.fixture
def a_job(fleet):
    """One that ended well and one that failed; a worker that is there."""
    fleet.start("a", "default:2").wait_ready()
    done = enqueue("probe.async", {"key": "done"})
    wait_state(done.id, "Succeeded")
    wait_state(enqueue("probe.async", {"key": "failed", "fail": "permanent"}).id, "Failed")
    return done


@pytest.mark.parametrize("path", SCREENS)
def test_every_region_of_a_screen_is_answered_by_itself_and_stays_the_same_element(page, a_job, path):
    answers = {}
    page.on("response", lambda response: answers.setdefault(response.url.partition("?")[0], []).append(response.status))
    page.goto(path.format(job=a_job.id))
    expect(page.locator("html")).to_have_attribute("data-hub", "on")
    expect(page.locator(".htmx-request")).to_have_count(0)
    found = page.evaluate(REGIONS)
    assert found

    for id_, url, trigger, swap, live in found:
        assert trigger == "turno:refresh", id_
        assert swap in {"outerMorph", "none"}, id_
        assert set(live.split()) <= TOPICS, id_
        assert page.locator(f"[id='{id_}']").count() == 1
        answer = page.request.get(url, headers={"HX-Request": "true", "Accept": "text/html"})
        assert answer.status in {200, 204}, url
        assert answer.headers.get("x-turno-at"), url
        assert answer.headers.get("x-turno-seen"), url
        again = page.request.get(url, headers={"X-Turno-Seen": answer.headers["x-turno-seen"]})
        assert again.status in {200, 204}, url
    page.evaluate("Turno.regions.refreshAll()")
    eventually(lambda: page.evaluate("0") == 0 and sum(map(len, answers.values())) > len(found), "regions are fetched")
    expect(page.locator(".htmx-request")).to_have_count(0)

    assert page.evaluate(KEPT, [id_ for id_, *_rest in found]) == [[id_, True, False] for id_, *_rest in found]


def test_a_worker_that_comes_is_counted_in_the_navigation_without_a_reload(page, fleet):
    page.goto("/painel/")
    expect(page.locator("html")).to_have_attribute("data-hub", "on")
    count = page.locator("#nav-contagens a[href='/painel/workers'] .num-t")
    expect(count).to_have_text("0")

    fleet.start("a", "default:1").wait_ready()

    expect(count).to_have_text("1")


def test_a_job_is_seen_to_run_and_to_end_on_its_page_without_a_reload(page, fleet):
    job = enqueue("probe.async", {"key": "seen", "hold": 2})
    page.goto(f"/painel/tarefas/{job.id}")
    expect(page.locator("html")).to_have_attribute("data-hub", "on")
    page.evaluate("window.sameDocument = true")
    expect(page.locator("#conteudo")).to_contain_text("Na fila")

    fleet.start("a", "default:1").wait_ready()
    started(fleet, "seen")

    expect(page.locator("#conteudo .head")).to_contain_text("Sucesso")
    assert page.evaluate("window.sameDocument") is True
