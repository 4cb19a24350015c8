"""A forgotten password and a second factor, as a person meets them."""

import base64
import time
from email.message import EmailMessage

import pytest
from playwright.sync_api import Browser, Page, expect

from headrace.accounts import totp
from tests.accounts.smtp import Mailbox, token_in
from tests.console.site import PASSWORD, Person, Site
from tests.e2e.program import eventually

pytestmark = [pytest.mark.long, pytest.mark.xdist_group("console")]

NEW = "another long phrase of a person"


def sent_to(mailbox: Mailbox, address: str) -> list[EmailMessage]:
    return [message for message in mailbox.messages if message["To"] == address]


def sign_in(page: Page, name: str, password: str) -> None:
    page.goto("/login")
    page.get_by_label("Username").fill(name)
    page.locator("input[name=password]").fill(password)
    page.get_by_role("button", name="Sign in").click()


def test_a_forgotten_password_is_reset_from_the_login_page(
    site: Site, browser: Browser, person: Person, mailbox: Mailbox
) -> None:  # S7
    address = f"{person.name}@example.org"
    body = {"email": address, "password": PASSWORD}
    person.client.post("/v1/me/email", json=body).raise_for_status()
    assert eventually(lambda: sent_to(mailbox, address))
    context = browser.new_context(base_url=site.url, locale="en-GB")
    page = context.new_page()
    (confirm,) = sent_to(mailbox, address)
    page.goto(f"/confirm-email#token={token_in(confirm)}")
    expect(page.get_by_text("Your e-mail address is confirmed.")).to_be_visible()
    page.goto("/login")
    page.get_by_role("link", name="Forgot your password?").click()
    page.get_by_label("Username or e-mail").fill(address)
    page.get_by_role("button", name="Send link").click()
    expect(page.get_by_text("Check your e-mail")).to_be_visible()
    assert eventually(lambda: any("/reset-password#" in each.get_content() for each in sent_to(mailbox, address)))
    link = sent_to(mailbox, address)[-1]
    assert f"{site.url}/reset-password#token=" in link.get_content()
    page.goto(f"/reset-password#token={token_in(link)}")
    expect(page).to_have_url(f"{site.url}/reset-password")  # the token does not stay in the history
    page.locator("input[name=password]").fill(NEW)
    page.get_by_role("button", name="Set new password").click()
    expect(page.get_by_text("Your password is changed.")).to_be_visible()
    sign_in(page, person.name, NEW)
    expect(page.get_by_role("button", name="Account")).to_be_visible()
    context.close()


def test_a_second_factor_is_turned_on_asked_for_and_turned_off(page: Page, person: Person) -> None:  # S7
    page.goto("/account")
    page.get_by_role("button", name="Turn on").click()
    dialog = page.get_by_role("dialog")
    dialog.locator("input[type=password]").fill(PASSWORD)
    dialog.get_by_role("button", name="Continue").click()
    expect(dialog.get_by_text("Scan this")).to_be_visible()
    secret = dialog.locator("code").inner_text().replace(" ", "")
    code = totp.code_of(base64.b32decode(secret), totp.step_of(time.time()))
    dialog.get_by_label("Code from the app").fill(code)
    dialog.get_by_role("button", name="Turn on").click()
    expect(page.get_by_role("heading", name="Your recovery codes")).to_be_visible()
    codes = page.get_by_role("dialog").locator("code").inner_text().split()
    assert len(codes) == 10
    page.get_by_role("dialog").get_by_role("button", name="Close").first.click()
    page.get_by_role("button", name="Account").click()
    page.get_by_role("menuitem", name="Sign out").click()
    expect(page.get_by_role("button", name="Sign in")).to_be_visible()
    sign_in(page, person.name, PASSWORD)
    field = page.get_by_label("Code from your authenticator app")
    expect(field).to_be_focused()
    field.fill("12345x")
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_text("This code is wrong or was used")).to_be_visible()
    field.fill(codes[0])
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("button", name="Account")).to_be_visible()
    page.goto("/account")
    page.get_by_role("button", name="Turn off").click()
    dialog = page.get_by_role("dialog")
    dialog.locator("input[type=password]").fill(PASSWORD)
    dialog.get_by_label("Code from the app, or a recovery code").fill(codes[1])
    dialog.get_by_role("button", name="Turn off").click()
    expect(page.get_by_role("button", name="Turn on")).to_be_visible()
