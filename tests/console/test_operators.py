"""Operators in a real browser: a schedule made, run and seen; who changed what; many canceled at once; plots."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.console.site import Person, Site
from tests.e2e.program import CHEAP, Program, eventually

pytestmark = [pytest.mark.long, pytest.mark.xdist_group("console")]

HOSTILE = '<img src=x onerror="window.hacked = true">'
PAGES = (
    *(
        "overview",
        "tasks",
        "tasks/new",
        "tasks/bulk",
        "tasks/failures",
        "queues",
        "workers",
        "schedules",
        "schedules/new",
        "runs",
        "locks",
    ),
    *("audit", "users", "plans", "ledger", "webhooks", "outbox", "configs", "risks", "archives", "settings"),
)
# As a link does: without loading everything anew.
GO = "path => { history.pushState({}, '', path); dispatchEvent(new PopStateEvent('popstate')); }"

FITS = """() => [...document.querySelectorAll('[role=table]')].every(
  table => [...table.querySelectorAll('[role=row]')].every(row => row.scrollWidth <= table.clientWidth))"""


@pytest.fixture(scope="module")
def worker(site: Site) -> Iterator[Program]:
    """A worker with a type that anybody may submit, beside what runs anyway."""
    settings = {**CHEAP, "PYTHONPATH": str(Path(__file__).parents[2])}
    started = Program("worker", "tests.console.operator_program:registry", folder=site._folder, settings=settings)
    yield started
    started.stop()
    started.close()


@pytest.fixture
def admin_page(site: Site, browser: Browser, site_admin: Person, worker: Program) -> Iterator[Page]:
    """The administrator's browser. Nothing it does leaves the server's own address, or breaks the policy."""
    assert eventually(lambda: _knows_report(site_admin) or not worker.running, within=60)
    assert worker.running, worker.err
    assert site.admin is not None
    name, password = site.admin
    context = browser.new_context(base_url=site.url, locale="en-GB", viewport={"width": 1280, "height": 900})
    context.set_default_timeout(60_000)
    assert context.request.post("/v1/auth/login", data={"username": name, "password": password}).ok
    page = context.new_page()
    broken: list[str] = []
    page.on("pageerror", lambda error: broken.append(str(error)))
    page.on("console", lambda said: broken.append(said.text) if "Content Security Policy" in said.text else None)
    page.on("request", lambda sent: None if sent.url.startswith(site.url) else broken.append(sent.url))
    yield page
    hacked = page.evaluate("window.hacked")
    context.close()
    assert broken == []
    assert hacked is None


def _knows_report(admin: Person) -> bool:
    return any(each["name"] == "report.build" for each in admin.get("/v1/task-types")["items"])


def test_a_schedule_is_made_run_and_seen(admin_page: Page) -> None:
    page = admin_page
    page.goto("/operators/schedules/new")
    page.get_by_label("Name").fill(HOSTILE)
    page.get_by_role("combobox", name="Task type").click()
    page.get_by_role("option", name="report.build").click()
    page.get_by_role("combobox", name="Time zone").fill("Shanghai")
    page.get_by_role("option", name="Asia/Shanghai").click()
    expect(page.get_by_text("Times in Asia/Shanghai")).to_be_visible()
    expect(page.get_by_text("at 09:00").first).to_be_visible()
    page.get_by_role("combobox", name="Overlapping runs").click()  # S27
    page.get_by_role("option", name="Queue one due time").click()
    expect(page.get_by_label("Maximum waiting runs")).to_have_count(0)  # of all due times alone
    labels = page.get_by_role("combobox", name="Labels")
    labels.fill("gpu")
    labels.press("Enter")
    expect(page.get_by_text("A label is name=value")).to_be_visible()
    labels.press("Backspace")
    page.get_by_label("customer").fill("ACME")  # a form made from the type's schema
    page.get_by_role("button", name="Create").click()
    expect(page.get_by_role("heading", name=HOSTILE)).to_be_visible()
    expect(page.get_by_text("Queue one due time")).to_be_visible()
    page.get_by_role("button", name="Run now").click()
    expect(page.get_by_role("table", name="Runs").get_by_text("Done").first).to_be_visible()
    page.get_by_role("link", name="Done ·").first.click()  # a bar of the timeline
    expect(page.get_by_text("manual")).to_be_visible()


def test_a_list_moves_by_itself(admin_page: Page, site_admin: Person) -> None:
    page = admin_page
    with page.expect_request("**/v1/admin/changes"):
        page.goto("/operators/tasks")
    expect(page.get_by_role("table", name="Tasks").or_(page.get_by_text("No tasks")).first).to_be_visible()
    # The product's own come every minute: they are there for who asks for them.
    own = page.get_by_role("table", name="Tasks").get_by_text(re.compile("^headrace[.]"))
    expect(own).to_have_count(0)
    page.get_by_role("switch", name="Include maintenance").click()
    expect(own.first).to_be_visible()
    made = site_admin.client.post(
        "/v1/tasks", json={"type": "report.build", "title": "Told, not asked for", "payload": {"customer": "nobody"}}
    )
    assert made.status_code == 201, made.text
    row = page.get_by_role("row").filter(has_text="Told, not asked for")
    expect(row.get_by_text("Failed")).to_be_visible()
    row.get_by_role("button").first.click()
    panel = page.get_by_role("dialog")  # S12: whose it is and what became of each attempt, beside the list
    expect(panel.get_by_text("Owner")).to_be_visible()
    expect(panel.get_by_text("Attempts")).to_be_visible()
    panel.get_by_role("link", name="Open the task page").click()
    # S12: the page of operators, under their own entry of the menu.
    expect(page.get_by_role("navigation").get_by_role("link", name="Tasks", exact=True)).to_have_attribute(
        "aria-current", "page"
    )
    main = page.get_by_role("main")
    expect(main.get_by_role("link", name="admin").first).to_have_attribute("href", re.compile("/operators/users/"))
    expect(main.get_by_text("Worker", exact=True)).to_be_visible()
    expect(main.get_by_text("Attempt 1", exact=True)).to_be_visible()
    expect(main.get_by_role("heading", name="Audit events")).to_be_visible()
    expect(page.get_by_text("gather")).to_be_visible()
    page.get_by_role("switch", name="Failed steps only").click()
    expect(page.get_by_text("gather")).to_have_count(0)
    page.reload()  # it is in the address
    expect(page.get_by_text("draw", exact=True)).to_be_visible()
    expect(page.get_by_text("gather")).to_have_count(0)


def test_why_a_run_failed_is_found(admin_page: Page, site_admin: Person) -> None:
    body = {"name": "nobody's report", "type": "report.build", "interval": 86400, "data": {"customer": "nobody"}}
    body |= {"max_retries": 0}
    schedule_id = site_admin.client.post("/v1/schedules", json=body).json()["id"]
    site_admin.client.post(f"/v1/schedules/{schedule_id}/run")
    admin_page.goto("/operators/runs?status=FAILED")
    admin_page.get_by_role("table", name="Runs").get_by_role("link").first.click()
    expect(admin_page.get_by_role("heading", name="Stack trace")).to_be_visible()
    expect(admin_page.get_by_text("<b>there is no such customer</b>").first).to_be_visible()


def test_who_changed_what_is_seen_field_by_field(admin_page: Page, site_admin: Person) -> None:
    page, data = admin_page, {"customer": "ACME"}
    body = {"name": "to be changed", "type": "report.build", "interval": 86400, "data": data}
    schedule_id = site_admin.client.post("/v1/schedules", json=body).json()["id"]
    site_admin.client.patch(f"/v1/schedules/{schedule_id}", json={"priority": 7, "description": HOSTILE})
    page.goto(f"/operators/audit?resource_id={schedule_id}&action=updated")
    page.get_by_role("table", name="Audit trail").get_by_role("link").first.click()
    row = page.get_by_role("row", name="priority")
    expect(row.get_by_role("cell").nth(0)).to_have_text("0")
    expect(row.get_by_role("cell").nth(1)).to_have_text("7")
    expect(page.get_by_role("row", name="description").get_by_role("cell").nth(1)).to_have_text(HOSTILE)
    expect(page.get_by_role("row", name="max_retries")).to_have_count(0)  # only what changed
    page.get_by_role("switch").click()
    expect(page.get_by_role("row", name="max_retries")).to_be_visible()
    page.go_back()  # the filter is in the address
    expect(page.get_by_role("table", name="Audit trail").get_by_role("link")).to_have_count(1)
    page.get_by_role("button", name="Verify").click()
    page.get_by_role("dialog").get_by_role("button", name="Verify").click()
    expect(page.get_by_text("All events match their seals")).to_be_visible()


def test_all_that_match_are_canceled_with_the_number_shown_before(admin_page: Page, site_admin: Person) -> None:
    page = admin_page
    later = {"type": "report.build", "payload": {"customer": "x"}, "title": HOSTILE, "run_at": "2099-01-01T00:00:00Z"}
    made = site_admin.client.post("/v1/tasks/batch", json={"tasks": [{**later, "queue": "q25"}] * 25})
    assert made.status_code == 201, made.text
    page.goto("/operators/tasks?queue=q25&status=QUEUED")
    expect(page.get_by_role("table", name="Tasks").get_by_text(HOSTILE).first).to_be_visible()
    page.get_by_role("button", name="All results").click()
    page.get_by_role("menuitem", name="Cancel tasks").click()
    dialog = page.get_by_role("dialog", name="Cancel 25 tasks?")
    expect(dialog.get_by_text("q25")).to_be_visible()  # the filter again, in words
    dialog.get_by_role("button", name="Cancel tasks").click()
    expect(page.get_by_text("The action is complete.")).to_be_visible()
    left = site_admin.get("/v1/tasks/count", queue="q25", status="CANCELED")
    assert left == {"count": 25, "exact": True}


def test_everybodys_tasks_and_ones_own_are_seen_one_after_the_other(admin_page: Page) -> None:
    """Both pages offer the task types; each used to break on what the other had read."""
    page = admin_page
    for path in ("/operators/tasks", "/tasks", "/operators/tasks"):
        page.evaluate(GO, path) if page.url.startswith("http") else page.goto(path)
        page.get_by_label("Type", exact=True).first.click()
        expect(page.get_by_role("option", name="report.build")).to_be_visible()
        page.keyboard.press("Escape")


def test_every_page_shows_something_and_none_is_wider_than_a_phone(admin_page: Page) -> None:
    page = admin_page
    page.goto("/operators/overview")
    expect(page.locator("svg.recharts-surface").first).to_be_visible()  # a plot
    page.get_by_text("Week", exact=True).click()
    expect(page).to_have_url("/operators/overview?range=week")
    page.set_viewport_size({"width": 390, "height": 844})
    for name in PAGES:
        page.evaluate(GO, f"/operators/{name}")
        expect(page.locator("#content:has(h1)")).to_be_visible()
        expect(page.locator("[aria-busy=true]")).to_have_count(0)
        expect(page.get_by_role("alert")).to_have_count(0)
        assert page.evaluate("document.documentElement.scrollWidth") <= 390, f"{name} is too wide"
    page.set_viewport_size({"width": 1024, "height": 844})  # between a phone and a desk: what does not fit is left out
    page.evaluate(GO, "/operators/audit")
    expect(page.get_by_role("table", name="Audit trail").get_by_role("link").first).to_be_visible()
    page.wait_for_function(FITS)


def test_tasks_are_found_by_what_is_known_of_them(admin_page: Page, site_admin: Person, person: Person) -> None:
    # S13: by the owner's name, by a part of the error, grouped by error; counts stand beside the states.
    task = {"type": "report.build", "title": "A failure to be found", "payload": {"customer": "nobody"}}
    me = person.get("/v1/me")["user"]["id"]
    made = site_admin.client.post("/v1/tasks", json={**task, "user_id": me})
    assert made.status_code == 201, made.text
    page = admin_page
    page.goto("/")
    expect(page.get_by_role("heading", name="Overview")).to_be_visible()  # S24: administrators land there
    page.keyboard.press("Control+k")
    page.get_by_role("combobox", name="Go to a page, or search").fill("tas")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Tasks", exact=True)).to_be_focused()
    row = page.get_by_role("row").filter(has_text="A failure to be found")
    expect(row.get_by_text(person.name)).to_be_visible()
    box = page.get_by_role("textbox", name="Search")
    box.fill(person.name)
    page.get_by_role("option", name=f"Owner {person.name}").click()
    expect(page.get_by_role("table", name="Tasks").get_by_role("row")).to_have_count(2)
    expect(row.get_by_text("Failed")).to_be_visible()
    expect(page.get_by_role("button", name="Failed 1")).to_be_visible()
    page.get_by_role("button", name=f"Owner {person.name}").click()
    page.get_by_role("link", name="Grouped by error").click()
    page.get_by_role("link", name="there is no such customer").first.click()
    expect(page.get_by_text("Error contains")).to_be_visible()
    expect(row.first).to_be_visible()


def test_a_user_is_signed_out_and_their_key_revoked(admin_page: Page, person: Person) -> None:  # S23
    """On the page of a user: what they bought, where they are signed in, their keys, and what they did."""
    key = person.client.post("/v1/api-keys", json={"name": "leaked", "scopes": ["tasks:read"]})
    assert key.status_code == 201, key.text
    page = admin_page
    page.goto(f"/operators/users/{person.get('/v1/me')['user']['id']}")
    expect(page.get_by_role("heading", name=person.name)).to_be_visible()
    for panel in ("Subscriptions", "Orders", "Units by period", "Activity"):
        expect(page.get_by_role("heading", name=panel)).to_be_visible()
    expect(page.get_by_text("leaked (")).to_be_visible()
    page.get_by_role("button", name="Revoke key").click()
    page.get_by_role("dialog").get_by_role("button", name="Revoke key").click()
    expect(page.get_by_text("leaked (")).to_have_count(0)
    assert person.get("/v1/api-keys")["items"] == []
    page.get_by_role("button", name="End session").click()
    page.get_by_role("dialog").get_by_role("button", name="End session").click()
    expect(page.get_by_role("button", name="End session")).to_have_count(0)
    assert person.client.get("/v1/me").status_code == 401
