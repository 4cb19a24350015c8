"""Marks that are shapes of a presentation: they go, with what only they needed, and nothing else does."""

import io
import shutil
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from lxml import etree
from PIL import Image
from pptx import Presentation
from pptx.util import Inches

from benchmarks.document_marks import DECK_KINDS, add_words, clean_deck, marked_deck
from benchmarks.in_process import process
from benchmarks.removal_documents import slides_xml
from headrace.assets.inspection import office
from headrace.removal.documents.slides import legacy
from headrace.removal.documents.slides.deck import P
from headrace.removal.documents.slides.timing import forget_shapes
from headrace.removal.errors import ConverterMissing, DocumentEncrypted, DocumentSigned, DocumentUnreadable
from headrace.removal.order import Hint, Order
from headrace.removal.report import Outcome, Report
from headrace.removal.runner import carry_out
from tests.missing_programs import missing


def clean(source: Path, **asked: object) -> tuple[Report, Path]:
    result = source.with_name("result.pptx")
    return process(Order(str(source), result=str(result), **asked)), result  # type: ignore[arg-type]


def names(path: Path) -> set[str]:
    with zipfile.ZipFile(path) as package:
        return set(package.namelist())


@pytest.mark.parametrize("kind", DECK_KINDS)
def test_the_mark_goes_and_the_rest_is_as_if_it_had_never_been_there(kind: str, tmp_path: Path) -> None:  # W-03
    original, marked = marked_deck(kind, tmp_path, slides=4)
    report, result = clean(marked)
    assert report.outcome is Outcome.REMOVED, report
    assert len(report.suspects) == 1  # not the logo, which is on every slide, too
    assert slides_xml(original) == slides_xml(result)
    # The mark's picture is gone, and so is the preview of the first slide, which showed it.
    assert names(result) == names(original) - {"docProps/thumbnail.jpeg"}
    assert [slide.notes_slide.notes_text_frame.text for slide in Presentation(str(result)).slides][3] == "Note 3"


def test_the_logo_in_the_corner_of_each_slide_is_listed_and_goes_when_named(tmp_path: Path) -> None:  # W-08
    clean_deck(3).save(tmp_path / "deck.pptx")
    report, _ = clean(tmp_path / "deck.pptx")
    assert report.outcome is Outcome.NO_MARK
    assert [(each.kind, each.pages) for each in report.candidates] == [("picture", (1, 2, 3))]
    report, result = clean(tmp_path / "deck.pptx", candidates=(1,))
    assert report.outcome is Outcome.REMOVED
    assert not any(name.startswith("ppt/media/") for name in names(result))


def test_a_slide_that_is_one_picture_is_told_of(tmp_path: Path) -> None:
    deck = clean_deck(3)
    packed = io.BytesIO()
    Image.new("RGB", (64, 36), (200, 210, 220)).save(packed, "PNG")
    deck.slides[1].shapes.add_picture(packed, 0, 0, deck.slide_width, deck.slide_height)
    deck.save(tmp_path / "deck.pptx")
    report, _ = clean(tmp_path / "deck.pptx")
    assert report.outcome is Outcome.NO_MARK
    assert report.warnings[0].startswith("1 slide is covered by a picture")


def test_a_deck_without_a_mark_is_not_touched(tmp_path: Path) -> None:
    clean_deck(3).save(tmp_path / "deck.pptx")
    report, result = clean(tmp_path / "deck.pptx")
    assert (report.facts["format"], report.facts["pages"], report.outcome, result.exists()) == (
        "pptx",
        3,
        Outcome.NO_MARK,
        False,
    )


def test_animations_of_others_stay(tmp_path: Path) -> None:
    _, marked = marked_deck("animated", tmp_path, slides=4)
    _, result = clean(marked)
    with zipfile.ZipFile(result) as package:
        slides = [package.read(f"ppt/slides/slide{number}.xml") for number in (1, 2, 3, 4)]
    assert [slide.count(b"<p:spTgt") for slide in slides] == [1, 1, 0, 1]
    assert [b"p:timing" in slide for slide in slides] == [True, True, False, True]


def test_what_a_click_on_the_mark_began_goes_with_it() -> None:
    """Another shape's effect stays; the sequence that waited for the mark has no start any more."""
    slide = etree.fromstring(
        f"""<p:sld xmlns:p="{P[1:-1]}"><p:timing><p:tnLst><p:par><p:cTn nodeType="tmRoot"><p:childTnLst>
        <p:seq><p:cTn nodeType="mainSeq"><p:childTnLst><p:par><p:cTn nodeType="clickEffect"><p:childTnLst>
        <p:set><p:tgtEl><p:spTgt spid="2"/></p:tgtEl></p:set></p:childTnLst></p:cTn></p:par>
        </p:childTnLst></p:cTn></p:seq>
        <p:seq><p:cTn nodeType="interactiveSeq"><p:stCondLst><p:cond><p:tgtEl><p:spTgt spid="9"/></p:tgtEl></p:cond>
        </p:stCondLst><p:childTnLst><p:par/></p:childTnLst></p:cTn></p:seq>
        <p:video><p:tgtEl><p:spTgt spid="9"/></p:tgtEl></p:video>
        </p:childTnLst></p:cTn></p:par></p:tnLst></p:timing></p:sld>"""
    )
    forget_shapes(slide, {"9"})
    assert [each.get("spid") for each in slide.iter(f"{P}spTgt")] == ["2"]
    assert len(list(slide.iter(f"{P}seq"))) == 1
    forget_shapes(slide, {"2"})
    assert slide.find(f"{P}timing") is None


def test_a_background_picture_is_the_users_to_judge(tmp_path: Path) -> None:
    deck = clean_deck(3)
    stream = io.BytesIO()
    Image.new("RGBA", (40, 30), (200, 0, 0, 60)).save(stream, "PNG")
    for slide in deck.slides:
        _, relation = slide.part.get_or_add_image_part(stream)
        slide._element.cSld.insert(0, etree.fromstring(_BACKGROUND.format(relation)))
    deck.save(tmp_path / "deck.pptx")
    report, result = clean(tmp_path / "deck.pptx")
    assert report.outcome is Outcome.NEEDS_REVIEW
    assert [each.kind for each in report.suspects] == ["background"]
    report, result = clean(tmp_path / "deck.pptx", candidates=(1,))
    assert report.outcome is Outcome.REMOVED
    assert "ppt/media/image2.png" not in names(result)


def test_the_design_of_a_master_is_the_users_to_judge(tmp_path: Path) -> None:
    deck = clean_deck(3)
    stream = io.BytesIO()
    Image.new("RGBA", (40, 30), (200, 0, 0, 60)).save(stream, "PNG")
    picture = deck.slides[0].shapes.add_picture(stream, Inches(6), Inches(5), Inches(4), Inches(2))
    _, relation = deck.slide_master.part.get_or_add_image_part(stream)
    picture._element.blipFill.blip.rEmbed = relation
    deck.slide_master.shapes._spTree.append(picture._element)
    deck.save(tmp_path / "deck.pptx")
    report, _ = clean(tmp_path / "deck.pptx")
    assert report.outcome in (Outcome.NO_MARK, Outcome.NEEDS_REVIEW)


def test_a_shape_that_is_called_a_watermark_is_one(tmp_path: Path) -> None:
    deck = clean_deck(2)
    box = add_words(deck.slides[1], "Fjord", angle=0, alpha=100, colour="101010")
    box.name = "PowerPlusWaterMarkObject42"
    deck.save(tmp_path / "deck.pptx")
    report, result = clean(tmp_path / "deck.pptx")
    assert (report.outcome, report.candidates[0].pages) == (Outcome.REMOVED, (2,))
    assert "Fjord" not in str(slides_xml(result))


def test_only_named_slides_change_and_a_master_is_left(tmp_path: Path) -> None:
    _, marked = marked_deck("words on slides", tmp_path, slides=4)
    report, result = clean(marked, pages=((2, 3),))
    assert report.outcome is Outcome.REMOVED
    assert [_says(slide) for slide in Presentation(str(result)).slides] == [True, False, False, True]
    _, marked = marked_deck("words on the master", tmp_path, slides=4)
    report, _ = clean(marked, pages=((2, 3),))
    assert report.outcome is Outcome.NO_MARK
    assert "on the master of other slides, too" in report.warnings[0]


def _says(slide: Any) -> bool:
    return any("CONFIDENTIAL" in shape.text_frame.text for shape in slide.shapes if shape.has_text_frame)


def rewritten(source: Path, target: Path, changes: dict[str, bytes]) -> Path:
    """The same package with other parts, or more."""
    with zipfile.ZipFile(source) as package, zipfile.ZipFile(target, "w") as result:
        for name in package.namelist():
            result.writestr(name, changes.pop(name, package.read(name)))
        for name, content in changes.items():
            result.writestr(name, content)
    return target


def test_a_signed_deck_is_changed_only_when_told_to(tmp_path: Path) -> None:
    _, marked = marked_deck("words on slides", tmp_path, slides=2)
    signed = rewritten(marked, tmp_path / "signed.pptx", {"_xmlsignatures/sig1.xml": b"<Signature/>"})
    with pytest.raises(DocumentSigned, match="--break-signature"):
        clean(signed)
    report, _ = clean(signed, break_signature=True)
    assert report.warnings == ("the signature does not hold any more",)


@pytest.mark.parametrize(
    ("part", "content", "said"),
    [
        ("ppt/slides/slide1.xml", b"<p:sld", "is broken"),
        ("ppt/presentation.xml", b"<a/>", "no presentation"),
        ("_rels/.rels", b"<Relationships/>", "no main part"),
        (
            "ppt/slides/slide1.xml",
            b'<!DOCTYPE x [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "'
            + b"&a;" * 9
            + b'"><!ENTITY c "'
            + b"&b;" * 9
            + b'">]><x>&c;</x>',
            "declares XML entities",
        ),
    ],
)
def test_a_broken_package_is_named(part: str, content: bytes, said: str, tmp_path: Path) -> None:
    clean_deck(1).save(tmp_path / "deck.pptx")
    broken = rewritten(tmp_path / "deck.pptx", tmp_path / "broken.pptx", {part: content})
    with pytest.raises(DocumentUnreadable, match=said):
        clean(broken)


def test_a_part_whose_packing_is_damaged_is_named(tmp_path: Path) -> None:
    deck = tmp_path / "deck.pptx"
    clean_deck(1).save(deck)
    with zipfile.ZipFile(deck) as package:
        begins = package.getinfo("ppt/presentation.xml").header_offset + 30 + len("ppt/presentation.xml")
    content = bytearray(deck.read_bytes())
    content[begins : begins + 40] = b"\xff" * 40
    deck.write_bytes(content)
    with pytest.raises(DocumentUnreadable, match="cannot be read"):
        clean(deck)


def test_what_is_a_package_but_none_of_slides_is_refused(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.pptx", "w") as package:
        package.writestr("hello.txt", "hello")
    with pytest.raises(DocumentUnreadable, match="no main part"):
        clean(tmp_path / "a.pptx")
    (tmp_path / "b.pptx").write_bytes(b"PK\x03\x04" + bytes(50))
    with pytest.raises(DocumentUnreadable, match=r"b\.pptx is not a presentation"):
        clean(tmp_path / "b.pptx")


def test_a_part_that_unpacks_without_end_is_refused(tmp_path: Path) -> None:
    clean_deck(1).save(tmp_path / "deck.pptx")
    bomb = tmp_path / "bomb.pptx"
    with zipfile.ZipFile(tmp_path / "deck.pptx") as package, zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED) as result:
        for name in package.namelist():
            content = package.read(name) if name != "ppt/slides/slide1.xml" else b" " * (65 * 1024**2)
            result.writestr(name, content)
    assert bomb.stat().st_size < 1_000_000
    with pytest.raises(DocumentUnreadable, match="larger than such a part may be"):
        clean(bomb)


_OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"


def test_old_slides_need_a_converter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(office, "_PROGRAMS", ())
    (tmp_path / "old.ppt").write_bytes(_OLE + "PowerPoint Document".encode("utf-16-le"))
    with pytest.raises(ConverterMissing):
        clean(tmp_path / "old.ppt")
    (tmp_path / "locked.pptx").write_bytes(_OLE + "EncryptedPackage".encode("utf-16-le"))
    with pytest.raises(DocumentEncrypted, match="without a password"):
        clean(tmp_path / "locked.pptx")
    (tmp_path / "old.doc").write_bytes(_OLE + "WordDocument".encode("utf-16-le"))
    with pytest.raises(DocumentUnreadable, match="no presentation"):
        clean(tmp_path / "old.doc")


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("soffice") is None, reason=missing("LibreOffice"))
def test_old_slides_go_there_and_back(tmp_path: Path) -> None:
    _, marked = marked_deck("words on slides", tmp_path, slides=2)
    legacy.convert(str(marked), str(tmp_path / "old.ppt"))
    order = Order(str(tmp_path / "old.ppt"), result=str(tmp_path / "new.ppt"))
    report = carry_out(order)
    assert (report.facts["format"], report.outcome) == ("ppt", Outcome.REMOVED)
    assert "converted by LibreOffice" in report.warnings[0]
    assert carry_out(replace(order, source=order.result or "", result=None)).candidates == ()


_BACKGROUND = (
    '<p:bg xmlns:p="http://schemas.openxmlformats.org/presentationml/2006/main"'
    ' xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main"'
    ' xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships"><p:bgPr><a:blipFill>'
    '<a:blip r:embed="{}"/><a:stretch><a:fillRect/></a:stretch></a:blipFill><a:effectLst/></p:bgPr></p:bg>'
)


def test_a_shape_on_one_slide_goes_by_a_box(tmp_path: Path) -> None:  # W-04
    """No candidate was there, and a box was answered with NO_MARK."""
    deck = clean_deck(3)
    original = tmp_path / "clean.pptx"
    deck.save(original)
    stamp = deck.slides[1].shapes.add_textbox(Inches(5), Inches(2), Inches(2), Inches(1))
    stamp.text_frame.text = "Reviewed by J."
    marked = tmp_path / "deck.pptx"
    deck.save(marked)
    report, result = clean(marked, mode="MANUAL", hints=(Hint(boxes=[(350, 134, 170, 90)]),))
    assert report.outcome is Outcome.REMOVED, report
    (taken,) = (each for each in report.candidates if each.id in report.removed)
    assert (taken.pages, taken.method) == ((2,), "box")
    assert slides_xml(original) == slides_xml(result)
    nothing, _ = clean(marked, mode="MANUAL", hints=(Hint(boxes=[(350, 134, 170, 90)], pages=(3, 3)),))
    assert nothing.outcome is Outcome.NO_MARK
