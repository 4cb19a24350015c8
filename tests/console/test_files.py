"""Clips, documents and slides in a real browser; uploads that break off; what is forgotten and what is not."""

import re
import shutil
from pathlib import Path

import pytest
from playwright.sync_api import Page, Route, expect

from benchmarks.document_marks import marked_deck, marked_pdf
from tests.assets.stand import png
from tests.console.site import PASSWORD, Person, marked_picture
from tests.e2e.program import eventually
from tests.removal import clips

pytestmark = [pytest.mark.long, pytest.mark.xdist_group("console")]

PART = 8 * 1024 * 1024
PATIENCE_MS = 240_000


def give(page: Page, *files: Path) -> None:
    page.goto("/remove")
    page.locator("input[type=file]").first.set_input_files([str(each) for each in files])
    expect(page.get_by_test_id("found-marks")).to_be_visible()


def take_out_what_was_found(page: Page) -> None:
    """Wait for what is found by itself, and take it out of the order."""
    found = page.get_by_test_id("found-marks")
    expect(found.get_by_text(re.compile("will be removed"))).to_be_visible(timeout=PATIENCE_MS)
    if not found.get_by_role("checkbox").count():
        found.get_by_role("button", name="Show the list").click()
    for box in found.get_by_role("checkbox", checked=True).all():
        box.uncheck()


def start(page: Page) -> str:
    page.get_by_label("I declare").check()
    page.get_by_role("button", name=re.compile("^Remove (the watermark|from)")).click()
    expect(page).to_have_url(re.compile("/remove/tsk_"))
    return page.url.rsplit("/", 1)[1]


def drag(page: Page, start: tuple[float, float], end: tuple[float, float]) -> None:
    """Over the picture in the editor, in shares of it."""
    box = page.get_by_test_id("mask-canvas").locator("img").bounding_box()
    assert box is not None
    (x, y), (to_x, to_y) = [(box["x"] + box["width"] * at[0], box["y"] + box["height"] * at[1]) for at in (start, end)]
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(to_x, to_y, steps=4)
    page.mouse.up()


def test_a_document_is_seen_page_by_page_and_corrected_there(tmp_path: Path, person: Person, page: Page) -> None:
    _, marked = marked_pdf("words", tmp_path, 3)
    give(page, marked)
    take_out_what_was_found(page)
    page.get_by_text("this page only").click()
    page.get_by_role("button", name="Next page").click()
    expect(page.get_by_test_id("mask-canvas").locator("img")).to_have_attribute("src", re.compile("/pages/2$"))
    page.keyboard.press("r")
    drag(page, (0.2, 0.2), (0.8, 0.8))
    page.get_by_test_id("mask-canvas").focus()  # and another one without the mouse
    for key in ("Enter", "ArrowLeft", "Shift+ArrowRight", "Enter"):
        page.keyboard.press(key)
    editor = page.get_by_test_id("mask-editor")
    expect(editor.get_by_role("status")).to_have_text("2 boxes drawn")
    for key in ("Enter", "Escape", "Control+z"):  # given up; and the last one undone
        page.keyboard.press(key)
    expect(editor.get_by_role("status")).to_have_text("1 box drawn")
    task_id = start(page)
    (hint,) = person.get(f"/v1/tasks/{task_id}")["payload"]["hints"]
    assert hint["pages"] == [2, 2]

    compare = page.get_by_test_id("compare")
    for number in (1, 2):
        seen = compare.get_by_role("img", name="After")
        expect(seen).to_have_attribute("src", re.compile(f"/result/pages/{number}$"))
        shown = "image => image.complete && image.naturalWidth > 1000"
        assert seen.evaluate(f"async image => {{ await image.decode(); return ({shown})(image); }}")
        page.get_by_role("button", name="Next page").click()
    page.get_by_role("button", name="Not right? Correct it").click()  # with what was drawn, where it was drawn
    expect(editor.locator("rect[data-kind=box]")).to_have_count(1)
    expect(editor.get_by_role("textbox", name="Page")).to_have_value("2")


def test_of_slides_what_was_found_is_chosen(tmp_path: Path, person: Person, page: Page) -> None:
    _, marked = marked_deck("words on slides", tmp_path, 3)
    give(page, marked)
    mark = page.get_by_role("checkbox", name=re.compile("CONFIDENTIAL.*slides 1–3"))
    expect(mark).to_be_checked(timeout=PATIENCE_MS)
    mark.uncheck()
    expect(page.get_by_text("Choose what to remove.")).to_be_visible()
    mark.check()
    task_id = start(page)
    if shutil.which("soffice") is None:
        expect(page.get_by_text("Taken off slides 1–3")).to_be_visible()
    else:
        seen = page.get_by_test_id("compare").get_by_role("img", name="After")
        expect(seen).to_have_attribute("src", re.compile("/result/pages/1$"))
    assert person.get(f"/v1/tasks/{task_id}")["payload"]["candidates"] == [1]
    page.get_by_text("Details", exact=True).click()
    expect(page.get_by_text("CONFIDENTIAL").last).to_be_visible()
    expect(page.get_by_text("Outside the mark")).to_have_count(0)  # S2: it was not measured


@pytest.mark.slow
def test_a_clip_is_marked_on_a_frame_and_compared_while_it_plays(tmp_path: Path, person: Person, page: Page) -> None:
    give(page, clips.make(tmp_path / "clip.mp4").path)
    picture = page.get_by_test_id("mask-canvas").locator("img")
    first = picture.get_attribute("src")
    page.get_by_role("slider", name="Frame").focus()
    for _ in range(20):
        page.keyboard.press("ArrowRight")
    expect(picture).not_to_have_attribute("src", first or "")
    expect(page.get_by_text("0:00.8 /")).to_be_visible()
    page.keyboard.press("r")
    drag(page, (0.4, 0.7), (0.99, 0.95))
    start(page)
    expect(page.get_by_role("button", name="Play")).to_be_visible(timeout=600_000)
    page.get_by_role("button", name="Play").click()
    assert eventually(
        lambda: page.locator("video").evaluate_all("films => films.every((film) => film.currentTime > 0.5)")
    )
    page.get_by_role("button", name="Next frame").click()
    films = page.locator("video")
    assert eventually(lambda: films.evaluate_all("films => films.every((film) => film.paused && !film.seeking)"))
    before = films.last.evaluate("film => film.currentTime")
    page.get_by_role("button", name="Next frame").click()
    assert eventually(lambda: films.last.evaluate("film => film.currentTime") > before)
    step = films.last.evaluate("film => film.currentTime") - before
    assert step == pytest.approx(2 / 25, rel=0.1)


def test_an_upload_that_broke_off_goes_on_after_a_reload(tmp_path: Path, page: Page) -> None:
    large = tmp_path / "large.png"
    large.write_bytes(png(64, 64, tail=2 * PART))
    sent: list[str] = []
    broken = True

    def part(route: Route) -> None:
        number = route.request.url.rsplit("/", 1)[1]
        if broken and number != "1":
            route.abort()
        else:
            sent.append(number)
            route.continue_()

    page.route("**/parts/*", part)
    page.goto("/remove")
    page.locator("input[type=file]").first.set_input_files(str(large))
    # The console asks the server anew each time, which answers, so that it tries again until it gives up.
    expect(page.get_by_role("alert").filter(has_text="large.png")).to_be_visible()
    assert sent == ["1"]
    broken = False
    page.reload()
    expect(page.get_by_text("Not finished: large.png")).to_be_visible()
    page.locator("input[type=file]").first.set_input_files(str(large))
    expect(page.get_by_test_id("found-marks")).to_be_visible()
    assert sent.count("1") == 1  # it was there already
    assert set(sent) == {"1", "2", "3"}


def test_a_mask_outlives_a_reload_but_not_its_owner(person: Person, page: Page, tmp_path: Path) -> None:
    photo = tmp_path / "photo.jpg"
    photo.write_bytes(marked_picture())
    give(page, photo)
    expect(page.get_by_test_id("mask-canvas").locator("img")).to_be_visible()
    page.get_by_test_id("mask-canvas").hover()
    page.keyboard.press("b")
    drag(page, (0.2, 0.5), (0.8, 0.5))
    page.reload()  # in the middle of drawing
    expect(page.get_by_test_id("mask-canvas").locator("img")).to_be_visible()
    page.get_by_role("button", name="Open in full window").click()
    editor = page.get_by_role("dialog").get_by_test_id("mask-editor")
    painted = "canvas => canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data.some(Boolean)"
    assert editor.locator("canvas").evaluate(painted)
    page.keyboard.press("Control+z")
    expect(editor.get_by_role("button", name="Undo")).to_be_disabled()
    page.keyboard.press("Control+Shift+z")
    with page.expect_download() as saved:
        page.get_by_role("button", name="Save the mask as a file").click()
    editor.get_by_role("button", name="Clear everything").click()
    with page.expect_file_chooser() as chooser:
        page.get_by_role("button", name="Load a mask").click()
    chooser.value.set_files(saved.value.path())
    assert eventually(lambda: editor.locator("canvas").evaluate(painted))
    page.get_by_role("button", name="Cancel").click()
    page.get_by_role("button", name="Account").click()
    page.get_by_role("menuitem", name="Sign out").click()
    expect(page.get_by_role("button", name="Sign in")).to_be_visible()
    assert page.evaluate("Object.keys(sessionStorage)") == []
    page.get_by_label("Username").fill(person.name)
    page.locator("input[name=password]").fill(PASSWORD)
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_text("Drop files here")).to_be_visible()
    # What was uploaded is still on the server: to go on with, or to delete.
    left = page.get_by_test_id("not-ordered")
    expect(left.get_by_text("photo.jpg")).to_be_visible()
    left.get_by_role("button", name="Continue").click()
    expect(page.get_by_test_id("found-marks")).to_be_visible()
    expect(left).to_have_count(0)
    page.get_by_role("button", name="Remove photo.jpg from the list").click()
    left.get_by_role("button", name="Delete photo.jpg").click()
    page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    expect(left).to_have_count(0)
    assert person.get("/v1/assets")["items"] == []
