"""What everybody comes for: a mark that vanishes, by itself or where somebody points at it."""

import hashlib
import re

import cv2
import numpy as np
import pytest
from playwright.sync_api import BrowserContext, FilePayload, Page, expect

from tests.console.site import PASSWORD, Person, marked_picture, paused_media_queue, pixels, visit
from tests.e2e.program import eventually
from tests.removal.pictures import poor_ground

pytestmark = [pytest.mark.long, pytest.mark.xdist_group("console")]

# What takes marks off must have loaded its networks, on a machine that may be busy.
PATIENCE_MS = 240_000
ODD_NAME = "<img src=x onerror=alert(1)>.jpg"


def choose(page: Page, name: str = "holiday.jpg") -> None:
    page.locator("input[type=file]").first.set_input_files(
        {"name": name, "mimeType": "image/jpeg", "buffer": marked_picture()}
    )
    expect(page.get_by_test_id("mask-editor")).to_be_visible()


def _is_read(context: BrowserContext, task_id: str) -> bool:
    """Whether the task's notification has come, and is read."""
    notes = context.request.get("/v1/notifications").json()["items"]
    return any(note["is_read"] for note in notes if (note["payload"] or {}).get("task_id") == task_id)


def test_a_newcomer_registers_uploads_sees_the_mark_vanish_and_downloads(
    site_admin: Person, context: BrowserContext, page: Page
) -> None:
    context.clear_cookies()
    page.goto("/")
    page.get_by_role("link", name="Create account").click()
    page.get_by_label("Username").fill("newcomer")
    page.get_by_label("Password").first.fill(PASSWORD)
    page.get_by_role("button", name="Create account").click()

    choose(page, ODD_NAME)
    expect(page.get_by_test_id("price")).to_contain_text("1 unit")
    begin = page.get_by_role("button", name="Remove the watermark")
    expect(begin).to_be_disabled()  # until the right is declared
    page.get_by_label("I declare").check()
    with paused_media_queue(site_admin):
        begin.click()
        expect(page.get_by_test_id("progress")).to_be_visible()
    expect(page.get_by_role("heading", name=ODD_NAME)).to_be_visible()  # a name is text, whatever is in it
    compare = page.get_by_test_id("compare")
    expect(compare).to_be_visible(timeout=PATIENCE_MS)
    expect(page.get_by_test_id("verdict").or_(page.get_by_test_id("still-visible"))).to_be_visible()
    expect(page.get_by_test_id("announcer")).to_contain_text("The result is ready.")
    expect(page.get_by_text("Charged only")).to_have_count(0)

    line = page.get_by_role("slider", name="Line between before and after")
    # S9: it begins where the mark is, which reaches a little to the right of the middle.
    start = int(line.get_attribute("aria-valuenow") or 0)
    assert start != 50
    assert 45 < start < 60
    line.focus()
    page.keyboard.press("ArrowRight")
    expect(line).to_have_attribute("aria-valuenow", str(start + 2))
    box = compare.bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + box["width"] * (start + 2) / 100, box["y"] + box["height"] / 2)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.25, box["y"] + box["height"] / 2)
    page.mouse.up()
    expect(line).to_have_attribute("aria-valuenow", "25")

    with page.expect_download() as taken:
        page.get_by_role("button", name="Download").click()
    task_id = page.url.rsplit("/", 1)[1]
    result = context.request.get(f"/v1/tasks/{task_id}/result").json()
    content = taken.value.path().read_bytes()
    assert hashlib.sha256(content).hexdigest() == result["sha256"]
    assert pixels(content).shape == (480, 640)
    left = context.request.get("/v1/usage/balance").json()["left"]
    page.get_by_role("button", name="Not good? Return the unit").click()
    expect(page.get_by_text("returned", exact=True)).to_be_visible()
    assert context.request.get("/v1/usage/balance").json()["left"] == left + 1
    # S21: who has seen the result has read its notification.
    assert eventually(lambda: _is_read(context, task_id))
    expect(page.get_by_test_id("bell")).to_have_attribute("aria-label", "Notifications")
    visit(page, "/tasks")
    expect(page.get_by_role("table", name="My tasks").get_by_text(ODD_NAME)).to_be_visible()
    visit(page, "/usage?tab=ledger")  # S11: one row for the order, by the name of its file
    page.get_by_role("table").get_by_role("link", name=ODD_NAME).click()
    expect(page).to_have_url(re.compile(f"/remove/{task_id}$"))  # S10: the page of a file is its result
    expect(page.get_by_test_id("compare")).to_be_visible()


def test_a_poor_result_is_seen_with_its_price_before_it_is_taken(person: Person, page: Page) -> None:
    # W-08: nobody pays for what they have not seen.
    picture, box = poor_ground()
    asset = person.client.post("/v1/assets?name=cells.png", content=picture).json()
    hints = [{"boxes": [box]}]
    told = {"asset_ids": [asset["id"]], "mode": "MANUAL", "hints": hints, "rights": {"basis": "OWNER"}}
    refused = person.client.post("/v1/removals", json=told).json()["items"][0]["id"]
    page.goto(f"/remove/{refused}")
    held = page.get_by_test_id("held-back")
    expect(held.get_by_test_id("compare")).to_be_visible(timeout=PATIENCE_MS)
    left = person.get("/v1/entitlements")["items"][0]["quota_left"]
    # S5: the mask was exact, so the advice is not to draw it more closely; and there is one primary action.
    expect(page.get_by_test_id("failure")).not_to_contain_text("closely")
    expect(page.locator(".mantine-Button-root[data-variant=filled]:not([disabled])")).to_have_count(1)
    held.get_by_role("button", name="Accept it as it is · 1 unit").click()
    # Who took it as it is must not read later that all is well.
    expect(page.get_by_test_id("still-visible")).to_contain_text("the mark may still be visible", timeout=PATIENCE_MS)
    expect(page.locator("[data-tone=warn]").get_by_text("Accepted as it is").first).to_be_visible()
    assert person.get("/v1/entitlements")["items"][0]["quota_left"] == left - 1
    # Nobody pays for it twice.
    taken = page.url
    page.goto(f"/remove/{refused}")
    expect(page.get_by_text("A later attempt at this file succeeded")).to_be_visible()  # S5: it is closed
    expect(page.get_by_role("button", name="Accept it as it is")).to_have_count(0)
    page.get_by_role("link", name="Open the result").click()
    expect(page).to_have_url(taken)


def test_a_mask_drawn_with_the_mouse_is_what_the_server_gets(site_admin: Person, person: Person, page: Page) -> None:
    page.goto("/remove")
    choose(page)
    expect(page.get_by_text("will be removed")).to_be_visible(timeout=PATIENCE_MS)
    page.get_by_test_id("mask-canvas").hover()
    page.keyboard.press("b")
    canvas = page.get_by_test_id("mask-canvas")
    picture = canvas.locator("img")
    expect(picture).to_be_visible()

    def place(x: float, y: float) -> tuple[float, float]:
        box = picture.bounding_box()
        assert box is not None
        return box["x"] + box["width"] * x, box["y"] + box["height"] * y

    def drag(start: tuple[float, float], end: tuple[float, float]) -> None:
        page.mouse.move(*place(*start))
        page.mouse.down()
        page.mouse.move(*place(*end), steps=8)
        page.mouse.up()

    drag((0.1, 0.5), (0.9, 0.5))  # a stroke over the word
    drag((0.1, 0.1), (0.9, 0.1))  # one too many
    page.keyboard.press("Control+z")
    page.keyboard.press("k")
    drag((0.8, 0.4), (0.95, 0.6))  # the end of the word is to stay
    page.mouse.move(*place(0.5, 0.5))
    page.keyboard.down("Control")
    page.mouse.wheel(0, -300)  # to the cursor: what is under it stays under it
    page.keyboard.up("Control")
    page.keyboard.press("e")
    drag((0.5, 0.45), (0.5, 0.55))  # rub out a little in the middle
    # What was found is not part of the mask: the user takes it out with a click, and draws instead.
    page.keyboard.press("0")
    page.keyboard.press("v")
    page.mouse.click(*place(0.3, 0.5))
    expect(page.get_by_text(re.compile("^0 of"))).to_be_visible()

    page.get_by_label("I declare").check()
    with paused_media_queue(site_admin):
        page.get_by_role("button", name="Remove the watermark").click()
        page.get_by_role("button", name="Stop").click()
        page.get_by_role("dialog").get_by_role("button", name="Stop").click()
        expect(page.get_by_text("Stopped. Nothing was charged.")).to_be_visible()
    order = person.get(f"/v1/tasks/{page.url.rsplit('/', 1)[1]}")["payload"]
    assert order["mode"] == "MANUAL"
    (hint,) = order["hints"]
    ((left, top, width, height),) = hint["keep"]
    assert (abs(left - 512) < 8, abs(top - 192) < 8, abs(width - 96) < 8, abs(height - 96) < 8) == (True,) * 4

    mask = pixels(person.client.get(f"/v1/assets/{order['mask_asset_id']}/content").content)
    assert mask.shape == (480, 640)
    assert set(np.unique(mask)) == {0, 255}
    assert mask[240, 160] == 255
    assert mask[48].max() == 0  # undone
    assert mask[240, 520:600].max() == 0  # kept
    assert mask[240, 320] == 0  # rubbed out


def test_who_has_used_up_their_quota_is_told_so_in_words(site_admin: Person, person: Person, page: Page) -> None:
    # W-03: 402, and what to do about it.
    (entitlement,) = person.get("/v1/entitlements")["items"]
    taken = site_admin.client.post(
        f"/v1/admin/entitlements/{entitlement['id']}/adjust",
        json={"units": -entitlement["quota_left"], "reason": "a test of an empty purse"},
    )
    assert taken.status_code < 300, taken.text
    page.goto("/remove")
    choose(page)
    expect(page.get_by_text("This costs 1 unit, and you have 0 left.")).to_be_visible()
    page.get_by_label("I declare").check()
    with page.expect_response("**/v1/removals") as refused:
        page.get_by_role("button", name="Remove the watermark").click()
    assert refused.value.status == 402
    problem = page.get_by_role("alert").filter(has_text="Include this ID")
    expect(problem).to_contain_text(refused.value.headers["x-request-id"])
    page.get_by_role("main").get_by_role("link", name="See plans").last.click()
    expect(page.get_by_role("tab", name="Plans")).to_have_attribute("aria-selected", "true")


def test_a_region_is_switched_off_by_a_click_and_the_order_names_the_rest(person: Person, page: Page) -> None:  # S8
    """What is found is drawn on the picture before anything is paid; a click switches it."""
    page.goto("/remove")
    choose(page)
    found = page.get_by_test_id("found-marks")
    expect(found.get_by_text("will be removed")).to_be_visible(timeout=PATIENCE_MS)
    region = page.locator("[data-kind=region]").first
    expect(region).to_have_attribute("data-on", "true")
    assert person.get("/v1/usage/balance")["left"] == 20, "to look is free"
    begin = page.get_by_role("button", name="Remove the watermark · 1 unit")
    page.get_by_label("I declare").check()
    expect(begin).to_be_enabled()
    region.scroll_into_view_if_needed()
    for state in (None, "true"):
        box = region.bounding_box()
        assert box is not None
        page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
        if state is None:
            expect(page.locator("[data-kind=region][data-on]")).to_have_count(0)
            expect(found.get_by_text("Choose what to remove.")).to_be_visible()
            expect(begin).to_be_disabled()
        else:
            expect(region).to_have_attribute("data-on", state)
    begin.click()
    expect(page.get_by_test_id("compare").or_(page.get_by_test_id("progress"))).to_be_visible(timeout=PATIENCE_MS)
    order = person.get(f"/v1/tasks/{page.url.rsplit('/', 1)[1]}")["payload"]
    assert (order["mode"], order["candidates"]) == ("MANUAL", [1])


def test_the_sample_picture_comes_out_clean_and_is_not_charged(person: Person, page: Page) -> None:  # S19
    page.goto("/remove")
    page.get_by_role("button", name="Try it with a sample picture, free").click()
    expect(page.get_by_test_id("found-marks").get_by_text("One mark was found")).to_be_visible(timeout=PATIENCE_MS)
    page.get_by_label("I declare").check()
    page.get_by_role("button", name="Remove the watermark · free").click()
    expect(page.get_by_test_id("compare")).to_be_visible(timeout=PATIENCE_MS)
    task_id = page.url.rsplit("/", 1)[1]
    assert person.get(f"/v1/tasks/{task_id}/result")["metrics"]["verdict"] == "CLEAN"
    assert person.get(f"/v1/removals/{task_id}")["charged"] == 0
    assert person.get("/v1/usage/balance")["left"] == 20


def test_a_batch_counts_each_file_once_and_has_one_notification(site_admin: Person, person: Person, page: Page) -> None:
    """S0, S4, S6, S21: what is over, what it cost, where to ask, and one notification for all files."""
    for key, value in (
        ("announcement", {"text": "Maintenance tonight", "level": "warning"}),
        ("contact", {"email": "help@example.org"}),
    ):
        told = site_admin.client.put(f"/v1/admin/configs/{key}", json={"value": value})
        assert told.status_code < 300, told.text
    page.goto("/remove")
    plain = pixels(marked_picture())[:160]
    clean = cv2.imencode(".png", np.ascontiguousarray(cv2.GaussianBlur(plain, (0, 0), 40)))[1].tobytes()
    files: list[FilePayload] = [
        {"name": "first.jpg", "mimeType": "image/jpeg", "buffer": marked_picture()},
        {"name": "second.png", "mimeType": "image/png", "buffer": clean},
        {"name": "third.jpg", "mimeType": "image/jpeg", "buffer": marked_picture()},
    ]
    page.locator("input[type=file]").first.set_input_files(files)
    expect(page.get_by_role("button", name="Remove from 3 files · 3 units")).to_be_visible()
    page.get_by_label("I declare").check()
    with paused_media_queue(site_admin):
        page.get_by_role("button", name="Remove from 3 files").click()
        expect(page.get_by_role("heading", name="3 files")).to_be_visible()
        expect(page.get_by_text("3 in progress")).to_be_visible()
        expect(page.get_by_role("button", name="Stop all")).to_be_visible()
        expect(page.get_by_role("button", name=re.compile("Download all"))).to_have_count(0)
        batch = page.url
        visit(page, "/usage")  # a page that reads no notification
    expect(page.get_by_test_id("bell")).to_have_attribute("aria-label", "1 unread notification", timeout=PATIENCE_MS)
    expect(page.get_by_text("Maintenance tonight")).to_be_visible()
    expect(page.get_by_role("link", name="help@example.org")).to_be_visible()
    page.get_by_test_id("bell").click()
    panel = page.get_by_role("region", name="Notifications")
    about = panel.get_by_role("link", name=re.compile("Your 3 files are processed"))
    expect(about).to_have_attribute("href", re.compile("/remove/batch/bat_"))
    page.keyboard.press("Escape")
    page.go_back()
    expect(page).to_have_url(batch)
    expect(page.get_by_text("2 removed · 1 without a mark")).to_be_visible()
    expect(page.get_by_test_id("bell")).to_have_attribute("aria-label", "Notifications")  # it is read
    expect(page.get_by_role("button", name="Download all (2)")).to_be_visible()
    cards = page.get_by_role("main").get_by_role("link").filter(has_text=re.compile("jpg|png"))
    assert [text.split("\n")[0] for text in cards.all_inner_texts()] == ["first.jpg", "second.png", "third.jpg"]
    page.get_by_role("link", name="Review 1").click()
    expect(page.get_by_role("heading", name="second.png")).to_be_visible()
    page.get_by_role("link", name="All files in this batch").click()
    # The same picture twice is the same result: it is charged once, and the second says so.
    assert person.get("/v1/usage/balance")["left"] == 19
    ids = {each["asset_name"]: each["id"] for each in person.get("/v1/removals")["items"]}
    free = next(name for name, task_id in ids.items() if person.get(f"/v1/removals/{task_id}").get("charged") == 0)
    assert free != "second.png"
    page.get_by_role("link", name=re.compile(free)).click()
    expect(page.get_by_test_id("same-as-before")).to_contain_text("Nothing was charged.")
    expect(page.get_by_text("nothing charged")).to_be_visible()
    for key in ("announcement", "contact"):
        assert site_admin.client.delete(f"/v1/admin/configs/{key}").status_code < 300
