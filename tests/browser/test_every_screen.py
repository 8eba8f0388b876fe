"""What holds for every screen: both themes, wide and narrow, both languages, the keyboard."""

import gettext
import re

import pytest
from playwright.sync_api import expect

from jobs.models import Job, Worker
from tests.architecture.tree import PROJECT
from tests.dashboard import recurring
from tests.kit.browser import PHONE, axe, no_sideways_scroll
from workers.demo.fill import fill

SCREENS = {
    "painel": "/painel/",
    "tarefas": "/painel/tarefas",
    "tarefas vazias": "/painel/tarefas?busca=nada-disso",
    "tarefa executando": "/painel/tarefas/{running}",
    "tarefa que falhou": "/painel/tarefas/{failed}",
    "tarefa agendada": "/painel/tarefas/{scheduled}",
    "workers": "/painel/workers",
    "worker": "/painel/workers/{worker}",
    "filas": "/painel/filas",
    "fila": "/painel/filas/reports",
    "erros": "/painel/erros",
    "promessas": "/painel/promessas",
    "recorrentes": "/painel/recorrentes?aberta={schedule}",
    "recorrente": "/painel/recorrentes/{schedule}",
    "recorrente nova": "/painel/recorrentes/nova",
}
every_screen = pytest.mark.parametrize("screen", SCREENS)
KEY = "chave-dos-testes-0123456789"
# What the page says: its own texts and what stands for them, without the data that jobs and workers brought.
TEXTS = """() => {
    const said = new Set(), walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    while (walker.nextNode()) {
        const node = walker.currentNode, parent = node.parentElement;
        if (!parent.closest("script, style, pre, code, .log, .board, .mosaic, [data-payload]"))
            said.add(node.textContent.trim().replace(/\\s+/g, " "));
    }
    for (const name of ["aria-label", "title", "placeholder"])
        document.querySelectorAll(`[${name}]`).forEach((e) => said.add(e.getAttribute(name).trim()));
    return [...said].concat([document.title.replace(/ · .*/, "")]);
}"""


@pytest.fixture
def address():
    """The address of a screen of the demonstration."""
    fill(seed=7, finished=150)
    jobs = Job.objects.order_by("-id")
    ids = {
        "running": jobs.get(origin="fechamento-mensal").id,
        "failed": jobs.filter(state="Failed", error_type="TimeoutError")[0].id,
        "scheduled": jobs.filter(state="Scheduled", waiting_for="retry")[0].id,
        "worker": Worker.objects.get(name="worker-01").id,
        "schedule": recurring.make("fechamento-diario"),
    }
    return lambda screen: SCREENS[screen].format(**ids)


def visit(page, address):
    """Load the page; it is there, with its language, one main part and a title of its own."""
    answer = page.goto(address)
    assert answer.status == 200
    expect(page.locator("main#conteudo")).to_be_visible()
    expect(page.locator("html[data-live=on], html:not([data-live])")).to_have_count(1)
    assert page.locator("h1").count() == 1
    assert re.fullmatch(r".+ · Turno", page.title())


@every_screen
def test_a_screen_is_whole_in_both_themes_wide_and_narrow(open_page, address, screen):
    for context in ({}, PHONE):
        page = open_page(**context)
        visit(page, address(screen))
        assert page.locator("html").get_attribute("lang").lower() == "pt-br"
        for theme in ("light", "dark"):
            page.emulate_media(color_scheme=theme)
            axe(page)
        no_sideways_scroll(page)
        if context:
            page.set_viewport_size({"width": 360, "height": 740})
            no_sideways_scroll(page)


def test_the_door_is_whole_in_both_themes_wide_and_narrow(open_page, site_with):
    closed = site_with(key=KEY)
    for context in ({}, PHONE):
        page = open_page(closed, **context)
        assert page.goto("/entrar").status == 200
        for theme in ("light", "dark"):
            page.emulate_media(color_scheme=theme)
            axe(page)
        page.set_viewport_size({"width": 360, "height": 740})
        no_sideways_scroll(page)


def test_a_job_that_is_not_there_is_told_in_the_same_house(page, allow, clean_tables):
    allow("status of 404")
    assert page.goto("/painel/tarefas/0199e1f2-6b7c-7d41-9c0e-2f4a6b8c8c41").status == 404
    expect(page.locator("main#conteudo")).to_be_visible()
    axe(page)
    no_sideways_scroll(page)


def messages():
    """Message and translation of all that is one plain text."""
    with (PROJECT / "locale/pt_BR/LC_MESSAGES/django.mo").open("rb") as file:
        catalogue = gettext.GNUTranslations(file)._catalog
    plain = {k: v for k, v in catalogue.items() if isinstance(k, str) and isinstance(v, str) and "%" not in k + v}
    return {k: v for k, v in plain.items() if k and k.lower() != v.lower()}


def left_over(page, others, own):
    """The texts of the page that are `others` and not also the page's `own` language."""
    return sorted(text for text in page.evaluate(TEXTS) if text in others and text not in own)


@every_screen
def test_a_screen_speaks_one_language(open_page, address, screen):
    known = messages()
    english, portuguese = set(known), set(known.values())
    page = open_page()
    visit(page, address(screen))
    assert left_over(page, english, portuguese) == []
    page = open_page(locale="en-US")
    visit(page, address(screen))
    assert page.locator("html").get_attribute("lang") == "en"
    assert left_over(page, portuguese, english) == []


def test_the_skip_link_is_first_and_leads_to_the_main_part(page, address):
    page.goto(address("painel"))
    page.keyboard.press("Tab")
    expect(page.locator(".skip")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("main#conteudo")).to_be_focused()


def test_two_keys_lead_to_each_screen(page, address):
    page.goto(address("painel"))
    keys = {"t": "tarefas", "r": "recorrentes", "w": "workers", "f": "filas", "e": "erros", "p": ""}
    for key, screen in keys.items():
        path = f"/painel/{screen}"
        page.keyboard.press("g")
        page.keyboard.press(key)
        expect(page).to_have_url(re.compile(re.escape(path) + "$"))
        expect(page.locator("main#conteudo")).to_be_visible()
        expect(page.locator("html[data-live=on]")).to_have_count(1)


def test_slash_searches_question_mark_helps_and_ctrl_k_goes_anywhere(page, address):
    page.goto(address("tarefas"))
    page.keyboard.press("/")
    expect(page.locator("main input[type=search]").first).to_be_focused()
    page.keyboard.press("?")  # in a field a key is a letter
    expect(page.locator("dialog[open]")).to_have_count(0)
    page.locator("h1").click()
    page.keyboard.press("?")
    expect(page.locator("dialog#atalhos")).to_be_visible()
    axe(page, "dialog#atalhos")
    page.keyboard.press("Escape")
    expect(page.locator("dialog[open]")).to_have_count(0)
    page.keyboard.press("Control+k")
    expect(page.locator("dialog#paleta")).to_be_visible()
    axe(page, "dialog#paleta")
    page.keyboard.type("workers")
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile("/painel/workers$"))
