"""Slides are drawn one deck after the other; who looks at one that is drawn does not wait."""

import asyncio
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from headrace.assets import pages
from headrace.assets.content import Content
from headrace.assets.drawing import Drawing
from headrace.assets.errors import DrawingBusy, PageNotFound
from headrace.assets.inspection.errors import InspectionTimeout
from headrace.assets.inspection.model import Format
from headrace.assets.service import Files
from tests.assets.plain import PlainInspector


class Slow(PlainInspector):
    """Draws when it is let."""

    def __init__(self) -> None:
        self.let = asyncio.Event()
        self.drawn: list[str] = []
        self.bytes = 4

    async def as_pdf(self, path: Path, kind: str, target: Path, *, folder: Path, tenant: str | None = None) -> bool:  # noqa: ARG002
        self.drawn.append(path.name)
        await self.let.wait()
        with target.open("wb") as file:
            file.truncate(self.bytes)
        return True


@pytest.fixture
def slow(files: Files) -> tuple[Slow, Files]:
    inspector = Slow()
    return inspector, replace(files, inspector=inspector, drawing=Drawing())


async def deck(files: Files, user: str, number: int) -> tuple[Content, str]:
    key = f"{user}/ast_{number}"
    await files.storage.put_bytes(f"media/{key}", b"deck")
    content = Content(f"media/{key}", 4, Format.PPTX.mime_type, f"{user}-{number}", "a.pptx")
    return content, f"preview/{key}.slides.pdf"


async def test_a_deck_that_is_drawn_waits_for_no_other(slow: tuple[Slow, Files]) -> None:
    inspector, files = slow
    content, kept = await deck(files, "ada", 1)
    await files.storage.put_bytes(kept, b"%PDF")
    drawing = asyncio.create_task(pages._slides(files, *await deck(files, "eve", 1)))
    async with asyncio.timeout(60):
        while not inspector.drawn:
            await asyncio.sleep(0.01)
        assert await pages._slides(files, content, kept) == kept
        assert not drawing.done()
        inspector.let.set()
        await drawing


async def test_nobody_keeps_others_waiting_with_many_decks(slow: tuple[Slow, Files]) -> None:
    inspector, files = slow
    asked = [asyncio.create_task(pages._slides(files, *await deck(files, "eve", number))) for number in range(6)]
    async with asyncio.timeout(60):
        while sum(each.done() for each in asked) < 2:
            await asyncio.sleep(0.01)
        ada = asyncio.create_task(pages._slides(files, *await deck(files, "ada", 7)))
        inspector.let.set()
        ended = await asyncio.gather(*asked, return_exceptions=True)
        assert await ada == "preview/ada/ast_7.slides.pdf"
    assert [type(each) for each in ended if not isinstance(each, str)] == [DrawingBusy] * 2
    assert len(inspector.drawn) == 5


async def test_what_is_too_large_to_be_kept_is_not_drawn_again(slow: tuple[Slow, Files]) -> None:
    inspector, files = slow
    inspector.let.set()
    inspector.bytes = pages._MAX_BYTES + 1
    content, kept = await deck(files, "ada", 1)
    for _ in range(2):
        with pytest.raises(PageNotFound):
            await pages._slides(files, content, kept)
    assert inspector.drawn == ["ast_1"]
    assert await files.storage.list_names("preview") == []


async def test_a_page_that_took_all_the_time_there_is_is_not_drawn_again(files: Files) -> None:
    """A form that draws itself: each request for its picture cost ten seconds of CPU."""
    tries = 0

    async def draw() -> None:
        nonlocal tries
        async with files.drawing.attempt("a page"):
            tries += 1
            raise InspectionTimeout

    for _ in range(3):
        with pytest.raises(InspectionTimeout):
            await draw()
    assert tries == 1


async def test_a_deck_in_the_queue_does_not_wait_for_longer_than_the_limit(slow: tuple[Slow, Files]) -> None:
    inspector, files = slow
    files = replace(files, drawing=Drawing(max_wait=timedelta(seconds=0.05)))
    first = asyncio.create_task(pages._slides(files, *await deck(files, "eve", 1)))
    async with asyncio.timeout(60):
        while not inspector.drawn:
            await asyncio.sleep(0.01)
        with pytest.raises(DrawingBusy) as refused:
            await pages._slides(files, *await deck(files, "ada", 1))
        inspector.let.set()
        await first
    assert refused.value.retry_after is not None
