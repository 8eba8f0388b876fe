"""A type that no worker knows, as people see it: on the Painel, in the list, on the job's page."""

import pytest
from playwright.sync_api import expect

from tests.dashboard.boards import make_worker
from tests.kit.browser import DESKTOP, PHONE, axe, both_themes, no_sideways_scroll
from tests.transitions.unserved import parked, unserved

TYPE = "integracao.sincronizar_com_um_nome_que_ninguem_esperava_tao_comprido"


@both_themes
@pytest.mark.parametrize("screen", [DESKTOP, PHONE], ids=["desk", "phone"])
def test_what_nobody_knows_is_named_counted_and_leads_to_its_jobs(site, open_page, screen, theme):
    make_worker("worker-01")
    unserved(type_=TYPE, since=90, seen=-600)
    made = parked(60, type=TYPE, gate=TYPE)
    page = open_page(site, **screen | {"color_scheme": theme})
    page.goto("/painel/")
    attention = page.locator("#atencao")
    expect(attention).to_contain_text(TYPE)
    expect(attention.locator("time[data-until]")).to_be_visible()
    no_sideways_scroll(page)
    axe(page)

    attention.locator("a.btn").click()
    expect(page.locator(f'a[href="/painel/tarefas/{made.id}"]').first).to_be_visible()
    page.goto(f"/painel/tarefas/{made.id}")
    expect(page.locator(".why li")).to_have_count(3)  # what it waits for, that nobody has it, when it is given up
    expect(page.locator(".why time[data-until]")).to_be_visible()
    no_sideways_scroll(page)
    axe(page)
