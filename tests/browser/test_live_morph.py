"""What a refresh leaves as it was: ticks, open details, focus and caret, selection, scroll, the nodes themselves."""

import pytest
from playwright.sync_api import expect

from tests.browser.live_page import LivePage, region

ROWS = """
<div id="caixa" class="log" data-keep="class" tabindex="0">{lines}</div>
<table><tbody data-rows id="linhas">{rows}</tbody></table>
<details id="d1"><summary id="resumo">mais</summary><p id="p1">{word}</p></details>
<input id="campo" value="{word}">
"""
ROW = (
    '<tr id="j-{n}" data-job="{n}"><td><input type="checkbox" data-row value="{n}" id="c-{n}"{tick}></td>'
    "<td>{word}</td></tr>"
)


def inner(word, ticked=()):
    rows = "".join(ROW.format(n=n, word=word, tick=" checked" if n in ticked else "") for n in range(5))
    lines = "".join(f"<p>linha {n} {word}</p>" for n in range(80))
    return ROWS.format(rows=rows, lines=lines, word=word)


@pytest.fixture
def live(page, site):
    shown = LivePage(page, site)
    shown.lay("r", region("r", inner("antes")))
    return shown.show(region("r", inner("antes"))).connected("r")


def change(live, word="depois", **more):
    live.lay("r", region("r", inner(word, **more)))
    live.again("r", lambda: live.signal("jobs", jobs=None))
    expect(live.page.locator("#j-0 td").nth(1)).to_have_text(word)


def test_ticked_boxes_stay_ticked_and_others_are_not_ticked_by_the_server(live):
    live.page.locator("#c-1").check()
    live.page.locator("#c-3").check()
    live.page.locator("#c-3").uncheck()

    change(live, ticked=(3, 4))

    assert [live.page.locator(f"#c-{n}").is_checked() for n in range(5)] == [False, True, False, False, False]


def test_open_details_stay_open_and_closed_ones_closed(live):
    live.page.locator("#resumo").click()

    change(live)

    expect(live.page.locator("#d1")).to_have_attribute("open", "")
    expect(live.page.locator("#p1")).to_have_text("depois")
    live.page.locator("#resumo").click()
    change(live, "ainda")
    assert live.page.evaluate("document.getElementById('d1').open") is False


def test_focus_and_caret_stay_in_a_field_and_what_was_typed_too(live):
    live.page.locator("#campo").click()
    live.page.keyboard.press("End")
    live.page.keyboard.type(" e mais")
    live.page.keyboard.press("ArrowLeft")

    change(live)

    assert live.page.evaluate("document.activeElement.id") == "campo"
    assert live.page.evaluate("[document.activeElement.value, document.activeElement.selectionStart]") == [
        "antes e mais",
        len("antes e mai"),
    ]


def test_the_nodes_of_rows_are_the_same_ones(live):
    live.page.evaluate("window.before = [...document.querySelectorAll('#r, #linhas tr')]")

    change(live)

    assert live.page.evaluate("[...document.querySelectorAll('#r, #linhas tr')].every((n, i) => n === before[i])")


def test_the_scroll_of_the_page_and_of_boxes_within_stays(live):
    live.page.set_viewport_size({"width": 1000, "height": 400})
    scrolled = """() => {
        const box = document.getElementById("caixa");
        box.scrollTop = 120; window.scrollTo(0, 150);
        return [box.scrollTop, window.scrollY];
    }"""
    before = live.page.evaluate(scrolled)
    assert before == [120, 150]

    change(live)

    assert live.page.evaluate("[document.getElementById('caixa').scrollTop, window.scrollY]") == before


def test_what_a_script_keeps_on_an_element_stays(live):
    live.page.evaluate("document.getElementById('caixa').classList.add('aberta')")

    change(live)

    expect(live.page.locator("#caixa")).to_have_class("log aberta")


def test_refreshes_leave_nothing_behind(live):
    nodes = "document.getElementById('r').parentNode.childNodes.length"
    before = live.page.evaluate(nodes)

    for word in ("um", "dois", "três"):
        live.lay("r", f"\n\n  {region('r', inner(word))}\n  ")
        live.again("r", lambda: live.signal("jobs", jobs=None))
        expect(live.page.locator("#j-0 td").nth(1)).to_have_text(word)

    assert live.page.evaluate(nodes) == before
    assert live.page.evaluate("document.getElementById('r').getAttributeNames().sort()") == sorted(
        ["id", "data-live", "data-every", "hx-get", "hx-trigger", "hx-swap", "data-htmx-powered"]
    )


def test_a_row_can_come_alone_in_the_answer(live):
    row = ROW.format(n=2, word="só esta", tick="")
    live.page.locator("#c-2").check()
    live.lay("r", f'<hx-partial hx-target="#j-2" hx-swap="outerMorph">\n{row}\n</hx-partial>')

    live.again("r", lambda: live.signal("jobs", jobs=None))

    expect(live.page.locator("#j-2 td").nth(1)).to_have_text("só esta")
    expect(live.page.locator("#j-1 td").nth(1)).to_have_text("antes")
    expect(live.page.locator("#c-2")).to_be_checked()
    assert live.page.evaluate("document.getElementById('linhas').childNodes.length") == 5


def test_selected_text_is_not_changed_under_the_hand_and_is_when_it_is_let_go(live):
    live.page.evaluate("getSelection().selectAllChildren(document.querySelector('#j-1 td:last-child'))")
    live.lay("r", region("r", inner("depois")))
    before = live.count("r")

    live.page.clock.install()
    live.signal("jobs", jobs=None)
    live.page.clock.run_for(3000)

    assert live.count("r") == before
    assert live.page.evaluate("getSelection().toString()") == "antes"
    live.page.evaluate("getSelection().removeAllRanges()")
    live.page.clock.run_for(1000)
    expect(live.page.locator("#j-1 td").nth(1)).to_have_text("depois")


def test_a_selection_that_is_left_there_holds_nothing_up_for_ever(live):
    live.page.evaluate("getSelection().selectAllChildren(document.querySelector('#j-1 td:last-child'))")
    live.lay("r", region("r", inner("depois")))

    live.page.clock.install()
    live.signal("jobs", jobs=None)
    live.page.clock.run_for(11_000)

    expect(live.page.locator("#j-1 td").nth(1)).to_have_text("depois")


def test_code_in_attributes_does_nothing(live):
    code = (
        '<button id="b" type="button" hx-on:click="window.bad = 1">b</button>'
        '<a id="v" hx-get="/-/shelf/v" hx-trigger="click[window.bad=2]" hx-swap="none">v</a>'
    )
    live.lay("r", region("r", inner("depois") + code))
    live.page.watch.allow("switched off")
    live.again("r", lambda: live.signal("jobs", jobs=None))

    live.page.locator("#b").click()
    live.page.locator("#v").dispatch_event("click")

    assert live.page.evaluate("window.bad") is None
    assert live.count("v") == 0
