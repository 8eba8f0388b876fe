"""The frame around every screen: its theme button, and the sheet that stands for the rail on a telephone."""

from playwright.sync_api import expect


def test_the_theme_button_goes_through_automatic_light_and_dark(page):
    page.goto("/painel/")
    button, html = page.locator(".rail [data-theme-toggle]"), page.locator("html")
    button.click()
    expect(html).to_have_attribute("data-theme", "light")
    button.click()
    expect(html).to_have_attribute("data-theme", "dark")
    page.reload()
    expect(html).to_have_attribute("data-theme", "dark")
    button.click()
    expect(page.locator("html:not([data-theme])")).to_have_count(1)


def test_the_switch_in_the_sheet_pauses_and_resumes(phone):
    phone.goto("/painel/")
    expect(phone.locator("html")).to_have_attribute("data-hub", "on")
    phone.locator("[data-open=mais]").click()
    switch = phone.locator("[data-live-switch]")
    expect(switch).to_be_checked()
    switch.tap()
    expect(phone.locator("html")).to_have_attribute("data-live", "paused")
    expect(switch).not_to_be_checked()
    switch.tap()
    expect(phone.locator("html")).to_have_attribute("data-live", "on")
