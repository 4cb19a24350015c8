"""Scanned documents: a mark that is part of the pictures goes where the pages tell of it; print and paper stay."""

from pathlib import Path

import cv2
import numpy as np
import pikepdf
import pytest
from PIL import Image, ImageDraw, ImageFont
from reportlab.pdfgen.canvas import Canvas

from benchmarks.in_process import process
from benchmarks.removal_documents import drawn
from headrace.removal.order import Order
from headrace.removal.report import Outcome, Report

SIZE = (620, 877)


def page(number: int) -> Image.Image:
    """Typed lines that differ from page to page, under a head that does not."""
    rng = np.random.default_rng(number)
    picture = Image.new("RGB", SIZE, (246, 244, 240))
    draw = ImageDraw.Draw(picture)
    draw.text((50, 30), "Tern & Gull Ltd., Oslo", fill=(20, 40, 120), font=ImageFont.load_default(20))
    for top in range(90 + int(rng.integers(0, 24)), 820, 24):
        line = "".join(rng.choice(list("abcdefghij klmnop qrst")) for _ in range(int(rng.integers(20, 60))))
        draw.text((50 + int(rng.integers(0, 6)), top), line, fill=(30, 30, 30), font=ImageFont.load_default(15))
    return picture


def marked(picture: Image.Image) -> Image.Image:
    layer = Image.new("RGBA", SIZE, (0, 0, 0, 0))
    font = ImageFont.load_default(95)
    ImageDraw.Draw(layer).text((310, 438), "JOHANNA", fill=(90, 90, 90, 90), font=font, anchor="mm")
    return Image.alpha_composite(picture.convert("RGBA"), layer.rotate(40)).convert("RGB")


def faintly(picture: Image.Image) -> Image.Image:
    return Image.blend(picture, marked(picture), 0.3)


def scan(path: Path, pictures: list[Image.Image], kind: str) -> Path:
    canvas = Canvas(str(path), pagesize=(595, 842), invariant=True)
    for number, picture in enumerate(pictures):
        packed = path.with_name(f"{path.stem}-{number}.{kind.lower()}")  # reportlab keeps how a file is packed
        picture.save(packed, kind, **({"quality": 88} if kind == "JPEG" else {}))
        canvas.drawImage(str(packed), 0, 0, 595, 842)
        canvas.showPage()
    canvas.save()
    return path


def clean(source: Path, result: Path, **asked: object) -> Report:
    return process(Order(str(source), result=str(result), **asked))  # type: ignore[arg-type]


def difference(first: Path, second: Path) -> float:
    pairs = zip(drawn(first)[0], drawn(second)[0], strict=True)
    return max(float(np.abs(a - b).mean()) for a, b in pairs)


@pytest.mark.long
@pytest.mark.parametrize("kind", ["JPEG", pytest.param("PNG", marks=pytest.mark.slow)])
def test_a_mark_over_all_scans_goes_and_print_stays(kind: str, tmp_path: Path) -> None:  # W-03
    pages = [page(number) for number in range(5)]
    plain = scan(tmp_path / "plain.pdf", pages, kind)
    source = scan(tmp_path / "source.pdf", [marked(each) for each in pages], kind)
    report = clean(source, tmp_path / "result.pdf")
    assert report.outcome is Outcome.REMOVED, report
    assert [(each.kind, each.pages) for each in report.candidates] == [("scan", (1, 2, 3, 4, 5))]
    assert report.check is not None
    assert report.check.residue_after < 0.1
    assert difference(plain, tmp_path / "result.pdf") < 0.2 * difference(plain, source)
    with pikepdf.open(tmp_path / "result.pdf") as pdf:
        (image,) = pdf.pages[0].get_images().values()
        assert str(image.Filter) == ("/DCTDecode" if kind == "JPEG" else "/FlateDecode")


def test_scans_without_a_mark_are_not_touched(tmp_path: Path) -> None:
    source = scan(tmp_path / "source.pdf", [page(number) for number in range(5)], "JPEG")
    report = clean(source, tmp_path / "result.pdf")
    assert (report.outcome, report.candidates) == (Outcome.NO_MARK, ())  # the head is printed firmly, in the margin
    assert "pages are pictures" in report.warnings[0]


@pytest.mark.long
def test_only_the_pages_that_have_the_mark_and_were_named_change(tmp_path: Path) -> None:
    pages = [page(number) for number in range(7)]
    source = scan(tmp_path / "source.pdf", [pages[0], *(marked(each) for each in pages[1:])], "JPEG")
    report = clean(source, tmp_path / "result.pdf", pages=((1, 3),))
    assert report.outcome is Outcome.REMOVED, report
    assert report.candidates[0].pages == (2, 3, 4, 5, 6, 7)
    before, after = drawn(source)[0], drawn(tmp_path / "result.pdf")[0]
    changed = [not np.array_equal(a, b) for a, b in zip(before, after, strict=True)]
    assert changed == [False, True, True, False, False, False, False]


@pytest.mark.slow
def test_a_picture_that_several_pages_show_is_cleaned_once(tmp_path: Path) -> None:
    pages = [marked(page(number)) for number in range(5)]
    single = clean(scan(tmp_path / "single.pdf", pages, "PNG"), tmp_path / "single.clean.pdf")
    source = scan(tmp_path / "source.pdf", pages, "PNG")
    with pikepdf.open(source, allow_overwriting_input=True) as pdf:
        pdf.pages.append(pdf.pages[4])  # another page, the same picture
        pdf.save(source)
    report = clean(source, tmp_path / "result.pdf")
    assert (single.outcome, report.outcome) == (Outcome.REMOVED, Outcome.REMOVED), report
    assert report.candidates[0].pages == (1, 2, 3, 4, 5, 6)
    result, alone = drawn(tmp_path / "result.pdf")[0], drawn(tmp_path / "single.clean.pdf")[0]
    assert np.abs(result[5] - alone[4]).mean() < 0.5
    # Where the other page is to stay as it is, the picture of both stays.
    report = clean(source, tmp_path / "part.pdf", pages=((1, 5),))
    before, after = drawn(source)[0], drawn(tmp_path / "part.pdf")[0]
    changed = [not np.array_equal(a, b) for a, b in zip(before, after, strict=True)]
    assert (report.outcome, changed) == (Outcome.REMOVED, [True] * 4 + [False] * 2)


@pytest.mark.long
@pytest.mark.parametrize(
    ("grain", "outcome"), [pytest.param(8, Outcome.REMOVED, marks=pytest.mark.slow), (20, Outcome.FAILED)]
)
def test_grain_is_not_printed_onto_the_pages_and_a_mark_that_drowns_in_it_stays(
    grain: int, outcome: Outcome, tmp_path: Path
) -> None:  # W-03
    rng = np.random.default_rng(3)
    noise = [cv2.GaussianBlur(rng.normal(0, 1.8 * grain, SIZE[::-1]), (0, 0), 0.6) for _ in range(5)]

    def grey(picture: Image.Image, number: int) -> Image.Image:
        level = np.asarray(picture.convert("L"), np.float32) * np.float32(0.85) + noise[number]
        return Image.fromarray(np.clip(level, 0, 255).astype(np.uint8))

    pages = [page(number) for number in range(5)]
    plain = scan(tmp_path / "plain.pdf", [grey(each, number) for number, each in enumerate(pages)], "JPEG")
    pages = [marked(each) for each in pages] if grain == 8 else [faintly(each) for each in pages]
    source = scan(tmp_path / "marked.pdf", [grey(each, number) for number, each in enumerate(pages)], "JPEG")
    report = clean(source, tmp_path / "clean.pdf", candidates=(1,))
    assert report.outcome is outcome, report
    if outcome is Outcome.REMOVED:
        assert difference(plain, tmp_path / "clean.pdf") < 0.7 * difference(plain, source)
    else:
        assert "grain" in (report.reason or "")
        assert not (tmp_path / "clean.pdf").exists()


@pytest.mark.long
def test_a_page_with_a_dark_box_over_half_of_the_mark_loses_it_too(tmp_path: Path) -> None:
    """Its outline is half there: the page kept its mark, and the result was called clean."""
    boxed = page(9)
    ImageDraw.Draw(boxed).rectangle((180, 330, 360, 560), fill=(80, 80, 80))
    source = scan(tmp_path / "source.pdf", [marked(each) for each in (boxed, *map(page, range(5)))], "JPEG")
    report = clean(source, tmp_path / "result.pdf")
    assert report.outcome is Outcome.REMOVED, report
    assert report.candidates[0].pages == (1, 2, 3, 4, 5, 6)
