"""What holds on every page: languages, light and dark, phones, keyboards, outages, ended sessions, strict policies."""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

from tests.console.site import PASSWORD, Person, Site, visit
from tests.missing_programs import missing

pytestmark = [pytest.mark.long, pytest.mark.xdist_group("console")]

PAGES = (
    *("/remove", "/tasks", "/usage", "/usage?tab=plans", "/usage?tab=ledger", "/webhooks", "/notifications"),
    *("/account", "/account?tab=keys", "/account?tab=sessions", "/account?tab=leave"),
)
AXE = Path(__file__).parents[2] / "console" / "node_modules" / "axe-core" / "axe.min.js"
MOST_FIRST_LOAD_BYTES = 200_000


@pytest.fixture
def receiver() -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """Somebody's server, and what it was sent."""
    got: list[dict[str, Any]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            got.append({"headers": dict(self.headers), "body": json.loads(body)})
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"thank you <b>very</b> much")

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/hook", got
    server.shutdown()
    thread.join()
    server.server_close()


def test_a_webhook_is_made_tested_and_its_delivery_read(page: Page, receiver: tuple[str, list[dict[str, Any]]]) -> None:
    url, got = receiver
    page.goto("/webhooks")
    page.get_by_role("button", name="Add an endpoint").first.click()
    page.get_by_label("Name").fill("<script>shop</script>")
    page.get_by_label("Address").fill(url)
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("This is shown only once.")).to_be_visible()
    page.get_by_role("dialog").get_by_role("button", name="Close").last.click()
    page.get_by_role("link", name="<script>shop</script>").click()
    page.get_by_role("button", name="Send a test").click()
    row = page.get_by_role("row").filter(has_text="webhook.test").filter(has_text="Done")
    expect(row).to_be_visible()
    assert got[0]["headers"]["webhook-signature"].startswith("v1,")
    row.get_by_role("button").first.click()
    expect(page.get_by_text("thank you <b>very</b> much")).to_be_visible()  # an answer is text, too


def test_a_plan_is_bought_and_the_page_notices_by_itself(site: Site, site_admin: Person, page: Page) -> None:
    plan = {"name": "Pro", "price_cents": 2900, "monthly_quota": 500}
    made = site_admin.client.post("/v1/admin/plans", json=plan)
    assert made.status_code == 201, made.text
    page.goto("/usage?tab=plans")
    page.get_by_role("button", name="Choose this plan").click()
    expect(page.get_by_text("Scan the code with WeChat.")).to_be_visible()
    cashier = page.context.new_page()
    cashier.goto(site.pay_url)
    with cashier.expect_navigation():  # to close a page while it posts a form may take forever
        cashier.get_by_role("button", name="Pay", exact=True).first.click()
    cashier.close()
    expect(page.get_by_text("Paid. Thank you!")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_text("Your plan", exact=True)).to_be_visible()
    page.get_by_role("tab", name="Overview").click()
    expect(page.get_by_test_id("units-left")).to_have_text("520")


def test_chinese_is_chosen_by_the_browser_or_by_hand_and_stays(
    site: Site, browser: Browser, person: Person, page: Page
) -> None:
    page.goto("/remove")
    page.get_by_role("button", name="Language").click()
    page.get_by_role("menuitem", name="简体中文").click()
    expect(page.get_by_role("heading", name="去除水印")).to_be_visible()
    page.reload()
    expect(page.get_by_role("heading", name="去除水印")).to_be_visible()
    assert page.locator("html").get_attribute("lang") == "zh-CN"
    # Notifications are written by the server: it knows as well.
    assert person.get("/v1/notifications/language") == {"language": "zh"}
    chinese = browser.new_context(base_url=site.url, locale="zh-CN")
    there = chinese.new_page()
    there.goto("/")
    expect(there.get_by_role("button", name="登录")).to_be_visible()
    chinese.close()


def test_on_a_phone_nothing_is_cut_off_and_the_menu_opens(page: Page) -> None:
    page.set_viewport_size({"width": 375, "height": 720})
    page.goto("/")
    for path in PAGES:
        visit(page, path)
        wide = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        assert wide <= 0, path
    menu = page.get_by_role("button", name="Menu")
    menu.click()
    page.get_by_role("link", name="My tasks").click()
    expect(page.get_by_role("heading", name="My tasks")).to_be_visible()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_serious(page: Page, scheme: str) -> None:
    if not AXE.exists():
        pytest.skip(missing("axe-core"))
    page.emulate_media(color_scheme=scheme, reduced_motion="reduce")  # type: ignore[arg-type]
    # The page's own policy lets nothing in from outside; the test may.
    axe = AXE.read_text()
    found: list[str] = []
    page.goto("/")
    page.evaluate(axe)
    for number, path in enumerate(PAGES):
        visit(page, path)
        # What is around a page is the same on each; in the dark only colours differ.
        where = "document" if number == 0 else "'#content'"
        rules = {"runOnly": ["color-contrast"]} if scheme == "dark" else {}
        result = page.evaluate(f"axe.run({where}, {json.dumps({'resultTypes': ['violations'], **rules})})")
        found += [
            f"{path}: {each['id']} {each['nodes'][0]['html'][:160]} {each['nodes'][0]['failureSummary']}"
            for each in result["violations"]
            if each["impact"] in ("serious", "critical")
        ]
    assert found == []
    dark = page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(15, 21, 24)"
    assert dark == (scheme == "dark")


def test_a_session_that_ends_in_the_middle_of_a_form_loses_nothing(context: BrowserContext, page: Page) -> None:
    page.goto("/webhooks")
    page.get_by_role("button", name="Add an endpoint").first.click()
    page.get_by_label("Name").fill("typed before the session ended")
    page.get_by_label("Address").fill("https://example.org/hook")
    context.clear_cookies()
    page.get_by_role("button", name="Save").click()
    dialog = page.get_by_role("dialog").filter(has_text="Sign in again")
    dialog.locator("input[name=password]").fill(PASSWORD)
    dialog.get_by_role("button", name="Sign in").click()
    expect(page.get_by_text("This is shown only once.")).to_be_visible()  # it was sent again, by itself
    page.get_by_role("dialog").get_by_role("button", name="Close").last.click()
    expect(page.get_by_role("link", name="typed before the session ended")).to_be_visible()


def test_a_server_that_restarts_is_waited_for(site: Site, person: Person, page: Page) -> None:
    page.goto("/account?tab=keys")
    page.get_by_role("button", name="Create a key").first.click()
    page.get_by_label("Name").fill("made during the restart")
    site.stop()
    page.get_by_role("dialog").get_by_role("button", name="Create a key").click()
    expect(page.get_by_text("The server cannot be reached.")).to_be_visible()
    site.start()
    expect(page.get_by_text("Your new key")).to_be_visible()
    expect(page.get_by_text("The server cannot be reached.")).to_have_count(0)
    # It was sent more than once, and made once.
    assert [key["name"] for key in person.get("/v1/api-keys")["items"]] == ["made during the restart"]


def test_the_first_load_is_small(site: Site, browser: Browser) -> None:
    """What the login page needs before anything is typed: scripts and styles, as they are sent."""
    context = browser.new_context(base_url=site.url)
    page = context.new_page()
    sent: list[int] = []
    kinds = (".js", ".css")
    page.on(
        "response",
        lambda reply: sent.append(int(reply.headers["content-length"])) if reply.url.endswith(kinds) else None,
    )
    page.goto("/login")
    expect(page.get_by_role("button", name="Sign in")).to_be_visible()
    assert 0 < sum(sent) < MOST_FIRST_LOAD_BYTES
    context.close()


def test_the_policy_is_strict(page: Page) -> None:
    answer = page.goto("/remove")
    assert answer is not None
    expect(page.get_by_text("Drop files here")).to_be_visible()
    policy = answer.headers["content-security-policy"]
    assert "script-src 'self';" in policy
    assert "unsafe" not in policy
    cookies = {each["name"]: each for each in page.context.cookies()}
    assert cookies["headrace_session"]["httpOnly"]
    assert cookies["headrace_session"]["sameSite"] == "Lax"
    refused = page.evaluate("fetch('/v1/sessions', {method: 'DELETE'}).then((answer) => answer.status)")
    assert refused == 403  # without the CSRF token
