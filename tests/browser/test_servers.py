"""The Painel and a job's page while broker and Redis are away, as people see them."""

import pytest
from playwright.sync_api import expect

from tests.dashboard.boards import make_worker
from tests.kit.browser import DESKTOP, PHONE, axe, both_themes, no_sideways_scroll
from tests.queries.house import message
from tests.transitions import rows

SLACK = 60_000  # ms: the first look at a server may be a region's next fetch


@pytest.fixture
def cut_off(site_with):
    """A web process whose broker and Redis servers nobody runs: such low ports are nobody's."""
    return site_with(
        TURNO_MESSAGING__TRANSPORT="rabbitmq",
        TURNO_MESSAGING__URLS="amqp://turno:hunter2@127.0.0.1:1/",
        TURNO_REDIS__URLS=",".join(f"redis://127.0.0.1:{port}" for port in (2, 3, 4)),
    )


@both_themes
@pytest.mark.parametrize("screen", [DESKTOP, PHONE], ids=["desk", "phone"])
def test_what_is_away_is_named_with_its_address_and_no_password(cut_off, open_page, screen, theme):
    make_worker(problems=[{"part": "processes", "error": "x" * 400}])
    message(job := rows.make_job(), age=90)
    page = open_page(cut_off, **screen | {"color_scheme": theme})
    page.goto("/painel/")
    attention = page.locator("#atencao")
    expect(attention).to_contain_text("RabbitMQ", timeout=SLACK)
    expect(attention).to_contain_text("Redis", timeout=SLACK)
    expect(attention).to_contain_text("127.0.0.1:")
    expect(page.locator("#veredito")).not_to_be_empty()
    assert "hunter2" not in page.content()
    no_sideways_scroll(page)
    axe(page)

    page.goto(f"/painel/tarefas/{job.id}")
    expect(page.locator(".why li")).to_have_count(
        3
    )  # no worker has its type, its message waits, its place in the queue
    expect(page.locator(".why time").first).to_be_visible()
    axe(page)
