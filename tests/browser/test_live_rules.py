"""When a region is fetched and when not, and what becomes of answers that are none."""

import pytest
from playwright.sync_api import expect

from jobs.ids import new_id
from tests.browser.live_page import LivePage, nudge, region
from tests.kit import shelf

HIDE = """(hidden) => {
    Object.defineProperty(document, "hidden", {configurable: true, get: () => hidden});
    document.dispatchEvent(new Event("visibilitychange"));
}"""


@pytest.fixture
def live(page, site):
    return LivePage(page, site)


def shown(live, *names, **more):
    """The page with one region a name, connected; the clock of the page stands still, so that only signals act."""
    for name in names:
        live.lay(name, region(name, f"<p id='p-{name}'>{name} antes</p>", **more))
    live.show(*(region(name, f"<p id='p-{name}'>{name} antes</p>", **more) for name in names)).connected(*names)
    return live


def test_a_word_of_the_database_reaches_the_page_and_refreshes_what_it_names(live):
    shown(live, "a")
    shown_b = region("a", "<p id='p-a'>a depois</p>")
    live.lay("a", shown_b)

    nudge("jobs", jobs=[str(new_id())])

    expect(live.page.locator("#p-a")).to_have_text("a depois")


def test_only_regions_of_the_topic_are_fetched(live):
    live.lay("a", region("a", "a", live="jobs"))
    live.lay("b", region("b", "b", live="workers letters"))
    live.show(region("a", "a", live="jobs"), region("b", "b", live="workers letters")).connected("a", "b")
    before = live.count("a")

    live.again("b", lambda: live.signal("letters"))

    assert live.count("a") == before


def test_a_region_of_rows_is_fetched_only_for_ids_that_are_in_it(live):
    here, elsewhere = str(new_id()), str(new_id())
    html = region("a", f'<p id="j" data-job="{here}">a</p>', more="data-live-ids")
    live.lay("a", html)
    live.lay("b", region("b", "b"))
    live.show(html, region("b", "b")).connected("a", "b")
    before = live.count("a")

    live.again("b", lambda: live.signal("jobs", jobs=[elsewhere]))
    assert live.count("a") == before
    live.again("a", lambda: live.signal("jobs", jobs=[elsewhere, here]))
    live.again("a", lambda: live.signal("jobs", jobs=None))


def test_many_signals_are_one_fetch_in_the_regions_own_time(live):
    shown(live, "a", every=1000)
    live.page.clock.install()
    live.page.clock.run_for(2000)  # the time after the first fetch
    before = live.count("a")

    for _ in range(20):
        live.signal("jobs", jobs=None)
    live.page.clock.run_for(50)
    live.until("a", before + 1)
    for _ in range(20):
        live.signal("jobs", jobs=None)
    live.page.clock.run_for(500)
    assert live.count("a") == before + 1
    live.page.clock.run_for(600)
    live.until("a", before + 2)
    live.page.clock.run_for(5000)

    assert live.count("a") == before + 2


def test_a_region_with_a_rhythm_of_its_own_is_fetched_without_a_signal(live):
    html = region("a", "a", more='data-poll="5000"')
    live.lay("a", html)
    live.page.clock.install()
    live.show(html).connected("a")

    live.again("a", lambda: live.page.clock.run_for(7000))


def test_what_the_region_shows_is_said_and_204_changes_nothing(live):
    html = region("a", "<p id='p'>a</p>")
    live.lay("a", html, headers={"X-Turno-Seen": "tag-1", "X-Turno-At": "1700000000000"})
    live.show(html).connected("a")
    live.page.evaluate("document.getElementById('p').textContent = 'da página'")
    live.lay("a", "", status=204, headers={"X-Turno-Seen": "tag-1"})

    live.again("a", lambda: live.signal("jobs"))

    assert live.asked[-1][1]["x-turno-seen"] == "tag-1"
    expect(live.page.locator("#p")).to_have_text("da página")


def test_a_hidden_page_fetches_nothing_keeps_its_socket_and_catches_up_once(live):
    sockets = []
    live.page.on("websocket", lambda socket: sockets.append(socket))  # noqa: PLW0108  (playwright marks it)
    shown(live, "a", "b")
    live.page.evaluate(HIDE, True)
    before = live.count("a"), live.count("b")
    clocks = live.page.evaluate("Turno.clocks.running")

    with sockets[0].expect_event("framesent"):  # the signal came, and was confirmed
        nudge("jobs")
    assert (live.count("a"), live.count("b")) == before
    live.page.evaluate(HIDE, False)
    live.until("a", before[0] + 1)
    live.until("b", before[1] + 1)

    assert (live.count("a"), live.count("b")) == (before[0] + 1, before[1] + 1)
    assert len(sockets) == 1
    assert not clocks


def test_after_a_time_away_and_once_a_minute_a_region_is_asked_for_whole(live):
    """A signal can die with its sender, and a clock stands still while the machine sleeps: that ends there."""
    asked = "x-turno-whole"
    live.page.clock.install()
    shown(live, "a")
    assert asked in live.asked[-1][1]
    live.again("a", lambda: live.signal("jobs") or live.page.clock.run_for(1100))
    assert asked not in live.asked[-1][1]
    live.page.evaluate(HIDE, True)
    live.again("a", lambda: live.page.evaluate(HIDE, False) or live.page.clock.run_for(50))
    assert asked in live.asked[-1][1]

    live.with_time("a")

    assert asked in live.asked[-1][1]


def test_paused_nothing_moves_and_the_page_says_since_when(live):
    html = region("a", '<time data-since="83" id="t">1:23</time>')
    live.lay("a", html)
    live.page.clock.install()
    live.show(html).connected("a")
    expect(live.page.locator(".rail [data-live-text]")).to_have_text("Ao vivo")

    live.page.keyboard.press(".")

    expect(live.html).to_have_attribute("data-live", "paused")
    expect(live.page.locator(".rail [data-live-text]")).to_contain_text("Pausado às ")
    expect(live.page.locator(".rail [data-live-toggle]")).to_have_attribute("aria-pressed", "true")
    before, text = live.count("a"), live.page.locator("#t").text_content()
    live.signal("jobs", jobs=None)
    live.page.clock.run_for(10_000)
    assert live.count("a") == before
    assert live.page.locator("#t").text_content() == text

    live.again("a", lambda: live.page.locator(".rail [data-live-toggle]").click())
    expect(live.html).to_have_attribute("data-live", "on")


def test_a_failed_answer_never_enters_the_page_and_is_asked_for_again(live):
    shown(live, "a")
    live.page.watch.allow("status of 500")
    live.page.clock.install()
    live.lay("a", "<h1>Erro do servidor</h1>", status=500)
    live.again("a", lambda: live.signal("jobs"))
    live.with_time("a")
    live.with_time("a")
    expect(live.page.locator("#p-a")).to_have_text("a antes")
    expect(live.page.locator("#a")).to_have_attribute("data-stale", "")

    live.lay("a", region("a", "<p id='p-a'>a depois</p>"))
    live.with_time("a")

    expect(live.page.locator("#p-a")).to_have_text("a depois")
    expect(live.page.locator("#a")).not_to_have_attribute("data-stale", "")


def test_an_answer_that_is_another_page_never_enters_this_one(live):
    shown(live, "a")

    live.lay("a", "<main id='conteudo'><h1>Outra página</h1></main>")
    live.again("a", lambda: live.signal("jobs"))

    expect(live.page.locator("#p-a")).to_have_text("a antes")
    expect(live.page.locator("h1")).to_have_count(0)


def test_an_answer_that_leads_to_the_login_says_that_the_session_has_ended(live):
    shown(live, "a")
    live.lay("a", "", status=302, headers={"Location": "/entrar?next=/painel/"})

    live.again("a", lambda: live.signal("jobs"))

    expect(live.page.locator("#queda")).to_be_visible()
    expect(live.page.locator("#queda [data-sign-in]")).to_be_visible()
    expect(live.page.locator("#queda [data-live-retry]")).to_be_hidden()
    expect(live.page.locator("#p-a")).to_have_text("a antes")


def test_where_no_socket_gets_through_the_page_says_so_and_asks_every_five_seconds(live):
    html = region("a", "a")
    live.lay("a", html)
    live.page.watch.allow("WebSocket connection|403")
    live.page.clock.install()

    # An address of plain HTTP: a handshake is refused there, as by a proxy that lets none through.
    live.show(html, replace=('content="/hubs/painel"', 'content="/health/live"'))
    expect(live.page.locator("#queda")).not_to_be_visible()
    live.again("a", lambda: live.page.clock.run_for(8000))

    expect(live.html).to_have_attribute("data-hub", "poll")
    expect(live.html).to_have_attribute("data-live", "on")
    expect(live.page.locator("#queda [data-lost-text]")).to_contain_text("5 s")
    live.again("a", lambda: live.page.clock.run_for(6000))


def test_running_clocks_are_moved_by_the_page_and_never_go_back(live):
    clocks = (
        '<time data-since="{0}" id="s">{1}</time> <time data-until="{2}" id="u">{3}</time> '
        '<time data-ago="{4}" id="g">{5}</time> <time data-ago="100000" id="d">ontem 19:12</time>'
    )
    live.lay("a", region("a", clocks.format(84, "1:24", 29, "0:29", 121, "há 2 min")))
    live.page.clock.install()
    live.show(region("a", clocks.format(83, "1:23", 30, "0:30", 120, "há 2 min"))).connected("a")
    live.page.clock.pause_at(live.page.evaluate("Date.now() / 1000") + 1)
    said = "['s', 'u', 'g', 'd'].map((id) => document.getElementById(id).textContent)"
    since, until, _ago, _day = live.page.evaluate(said)

    live.page.clock.run_for(3000)

    later = live.page.evaluate(said)
    assert [seconds(later[0]) - seconds(since), seconds(until) - seconds(later[1])] == [3, 3]
    assert later[3] == "ontem 19:12"
    # An answer that comes late counts a second less: the page does not.
    now = seconds(later[0])
    live.lay("a", region("a", clocks.format(now - 1, "x", 20, "0:20", 0, "agora")))
    live.signal("jobs")
    live.page.clock.run_for(10)
    expect(live.page.locator("#u")).to_have_text("0:20")
    assert seconds(live.page.locator("#s").text_content()) == now
    # The same number said again, of another instant: counted from now.
    live.page.clock.run_for(5_000)
    assert live.page.locator("#g").text_content() != live.page.evaluate("Turno.words.ago_now")
    live.lay("a", region("a", clocks.format(7, "x", 0, "0:00", 0, "agora") + " "))
    live.signal("jobs")
    live.page.clock.run_for(10)
    expect(live.page.locator("#s")).to_have_text("0:07")
    assert live.page.locator("#g").text_content() == live.page.evaluate("Turno.words.ago_now")


def seconds(text):
    minutes, _colon, rest = text.partition(":")
    return int(minutes) * 60 + int(rest)


def test_the_shelf_is_not_there_for_others(site):
    assert site.get(shelf.SHELF + "nothing") == 404
