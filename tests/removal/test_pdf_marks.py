"""Every way in which programs put a mark into a PDF: it goes, and nothing else does."""

import zlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pikepdf
import pytest
from pikepdf import Array, Dictionary, Name
from PIL import Image
from reportlab.pdfbase import pdfmetrics
from reportlab.pdfbase.cidfonts import UnicodeCIDFont
from reportlab.pdfgen.canvas import Canvas

from benchmarks.document_marks import PDF_KINDS, clean_pdf, marked_pdf, outlines, pale_words, tiles, words
from benchmarks.in_process import process
from benchmarks.removal_documents import drawn
from headrace.removal.documents.scoring import Evidence
from headrace.removal.errors import CandidateUnknown, DocumentEncrypted, DocumentSigned, DocumentUnreadable
from headrace.removal.order import Hint, Order
from headrace.removal.report import Outcome, Report


def clean(source: Path, **asked: object) -> tuple[Report, Path]:
    result = source.with_name("result.pdf")
    return process(Order(str(source), result=str(result), **asked)), result  # type: ignore[arg-type]


def same(first: Path, second: Path) -> bool:
    (pixels, texts), (other_pixels, other_texts) = drawn(first), drawn(second)
    return texts == other_texts and all(np.array_equal(a, b) for a, b in zip(pixels, other_pixels, strict=True))


@pytest.mark.parametrize("kind", PDF_KINDS)
def test_the_mark_goes_and_the_rest_is_as_if_it_had_never_been_there(kind: str, tmp_path: Path) -> None:  # W-03
    original, marked = marked_pdf(kind, tmp_path, pages=3)
    report, result = clean(marked)
    assert report.outcome is Outcome.REMOVED, report
    assert report.check is not None
    assert report.check.residue_before > 0.5
    assert report.check.residue_after < 0.05
    assert same(original, result)
    assert len(report.suspects) == 1  # neither the letterhead nor the page number


def test_a_layer_of_a_form_does_not_hide_the_artifact_around_it(tmp_path: Path) -> None:
    """The layer's name won, and one of nine watermarks of such a program was removed."""
    _, marked = marked_pdf("layer in an artifact", tmp_path, pages=2)
    report, _ = clean(marked)
    assert [each.method for each in report.suspects] == [Evidence.NAMED]


def foot_line(canvas: Canvas) -> None:
    canvas.setFont("Helvetica", 8)
    canvas.drawCentredString(297, 20, "Licensed to jane@x.example, order 4711")


def corner_logo(canvas: Canvas) -> None:
    canvas.drawInlineImage(Image.new("RGB", (30, 30), (200, 40, 40)), 540, 20, 30, 30)


@pytest.mark.parametrize(
    ("draw", "outcome"), [(foot_line, Outcome.NEEDS_REVIEW), (corner_logo, Outcome.NO_MARK)], ids=["line", "logo"]
)
def test_what_is_in_the_margin_of_each_page_is_listed_and_goes_when_named(
    draw: Callable[[Canvas], None], outcome: Outcome, tmp_path: Path
) -> None:  # W-08
    """A line that names the buyer is asked about; a logo may be the letterhead's, and is listed."""
    original, marked = clean_pdf(tmp_path / "clean.pdf", 3), clean_pdf(tmp_path / "marked.pdf", 3, draw)
    report, _ = clean(marked)
    assert report.outcome is outcome
    at_foot = [each for each in report.candidates if each.box.top > 780]
    assert len(at_foot) == 1
    assert at_foot[0].pages == (1, 2, 3)
    for asked in ({"candidates": (at_foot[0].id,)}, {"mode": "MANUAL", "hints": (Hint(boxes=((150, 780, 430, 60),)),)}):
        report, result = clean(marked, **asked)
        assert report.outcome is Outcome.REMOVED
        assert same(original, result)


def test_a_box_around_a_mark_leaves_the_letterhead_that_it_touches(tmp_path: Path) -> None:
    """A box over the whole page took off the letterhead as well, and the result was called clean."""
    original, marked = clean_pdf(tmp_path / "clean.pdf", 3), clean_pdf(tmp_path / "marked.pdf", 3, words)
    report, result = clean(marked, mode="MANUAL", hints=(Hint(boxes=((0, 0, 595, 842),)),))
    assert len(report.candidates) > len(report.suspects) == 1
    assert report.outcome is Outcome.REMOVED
    assert same(original, result)


@pytest.mark.parametrize("subtype", [Name.Stamp, Name.FreeText])
def test_a_stamp_is_listed_even_if_it_is_on_one_page(subtype: Name, tmp_path: Path) -> None:
    original = clean_pdf(tmp_path / "clean.pdf", 3)
    with pikepdf.open(original) as pdf:
        look = pdf.make_stream(b"0 0.5 0 rg 0 0 120 40 re f", BBox=Array([0, 0, 120, 40]), Subtype=Name.Form)
        note = Dictionary(
            Type=Name.Annot, Subtype=subtype, Rect=Array([200, 400, 320, 440]), F=4, AP=Dictionary(N=look)
        )
        note.Contents = pikepdf.String("Reviewed")
        pdf.pages[1].obj.Annots = Array([pdf.make_indirect(note)])
        pdf.save(tmp_path / "marked.pdf")
    report, _ = clean(tmp_path / "marked.pdf")
    assert report.outcome is Outcome.NO_MARK
    stamps = [each for each in report.candidates if each.kind == str(subtype)[1:].lower()]
    assert [each.pages for each in stamps] == [(2,)]
    report, result = clean(tmp_path / "marked.pdf", candidates=(stamps[0].id,))
    assert report.outcome is Outcome.REMOVED
    assert same(original, result)


def everything(path: Path) -> bytes:
    """All bytes of a file, with its streams unpacked."""
    with pikepdf.open(path) as pdf:
        streams = [each.read_bytes() for each in pdf.objects if isinstance(each, pikepdf.Stream)]
    return path.read_bytes() + b"".join(streams)


@pytest.mark.parametrize("kind", ["words", "qpdf overlay", "artifact", "layer", "annotation", "pattern"])
def test_the_mark_is_in_no_corner_of_the_file(kind: str, tmp_path: Path) -> None:
    _, marked = marked_pdf(kind, tmp_path, pages=2)
    secret = b"DO NOT COPY" if kind == "pattern" else b"CONFIDENTIAL"
    assert secret in everything(marked)
    _, result = clean(marked)
    assert secret not in everything(result)
    assert b"Watermark" not in everything(result)


def test_former_revisions_with_the_mark_are_gone(tmp_path: Path) -> None:
    _, marked = marked_pdf("qpdf overlay", tmp_path, pages=2)
    size = marked.stat().st_size
    # A second revision that hides the mark behind a new page object still has it in the first.
    with marked.open("ab") as file:
        file.write(b"\n% revised\n")
    _, result = clean(marked)
    assert b"CONFIDENTIAL" not in everything(result)
    assert result.stat().st_size < size


def test_a_document_without_a_mark_is_not_touched(tmp_path: Path) -> None:
    report, result = clean(clean_pdf(tmp_path / "letter.pdf", pages=3))
    assert (report.outcome, report.suspects, result.exists()) == (Outcome.NO_MARK, (), False)


def test_one_page_needs_words_of_a_mark(tmp_path: Path) -> None:
    report, result = clean(clean_pdf(tmp_path / "one.pdf", 1, words))
    assert report.outcome is Outcome.REMOVED
    result.unlink()
    report, result = clean(clean_pdf(tmp_path / "other.pdf", 1, pale_words))
    assert report.outcome is Outcome.NEEDS_REVIEW
    assert report.reason is not None
    assert "--only" in report.reason
    assert not result.exists()


@pytest.mark.parametrize("kind", ["outlines", "picture"])
def test_one_page_that_is_stamped_without_words_asks(kind: str, tmp_path: Path) -> None:
    stamp, page = tmp_path / "stamp.pdf", clean_pdf(tmp_path / "page.pdf", 1)
    marked_pdf(kind, tmp_path, pages=1)
    with pikepdf.open(tmp_path / f"{kind}.pdf") as pdf:
        pdf.save(stamp)
    with pikepdf.open(page) as pdf, pikepdf.open(stamp) as over:
        letters = pikepdf.parse_content_stream(over.pages[0])
        last = max(at for at, each in enumerate(letters) if str(each.operator) == "ET")
        over.pages[0].Contents = over.make_stream(pikepdf.unparse_content_stream(letters[last + 1 :]))
        pdf.pages[0].add_overlay(over.pages[0], None)
        pdf.save(tmp_path / "stamped.pdf")
    assert clean(tmp_path / "stamped.pdf")[0].outcome is Outcome.NEEDS_REVIEW
    report, result = clean(tmp_path / "stamped.pdf", candidates=(1,))
    assert report.outcome is Outcome.REMOVED
    assert same(page, result)


def test_small_words_all_over_one_page_are_certain(tmp_path: Path) -> None:
    report, result = clean(clean_pdf(tmp_path / "one.pdf", 1, tiles))
    assert (report.outcome, report.candidates[0].copies) == (Outcome.REMOVED, 32)
    assert same(clean_pdf(tmp_path / "clean.pdf", 1), result)


def test_what_is_doubtful_goes_when_somebody_names_it(tmp_path: Path) -> None:
    original, marked = clean_pdf(tmp_path / "clean.pdf", 1), clean_pdf(tmp_path / "marked.pdf", 1, pale_words)
    report, result = clean(marked, mode="MANUAL", candidates=(1,))
    assert (report.outcome, report.removed) == (Outcome.REMOVED, (1,))
    assert same(original, result)
    with pytest.raises(CandidateUnknown, match="no candidate 7"):
        clean(marked, candidates=(7,))


def test_only_the_named_pages_change(tmp_path: Path) -> None:
    original, marked = marked_pdf("qpdf overlay", tmp_path, pages=4)
    report, result = clean(marked, pages=((2, 3),))
    assert report.outcome is Outcome.REMOVED
    (before, _), (unmarked, _), (after, _) = drawn(marked), drawn(original), drawn(result)
    expected = [before[0], unmarked[1], unmarked[2], before[3]]
    assert all(np.array_equal(a, b) for a, b in zip(expected, after, strict=True))


def test_two_marks_are_two_candidates_and_both_go(tmp_path: Path) -> None:
    def both(canvas: Canvas) -> None:
        words(canvas)
        outlines(canvas)

    original, marked = clean_pdf(tmp_path / "clean.pdf"), clean_pdf(tmp_path / "marked.pdf", 4, both)
    report, result = clean(marked)
    assert report.removed == (1, 2)
    assert {each.kind for each in report.candidates} == {"text", "path"}
    assert same(original, result)


def test_a_candidate_says_what_where_and_why(tmp_path: Path) -> None:
    report = process(Order(str(clean_pdf(tmp_path / "marked.pdf", 4, pale_words))))
    (found,) = report.suspects
    assert (found.id, found.kind, found.text, found.pages) == (1, "text", "Mara Lind, Oslo", (1, 2, 3, 4))
    assert found.method == Evidence.REPETITION
    assert found.certain
    assert 30 < found.box.left < 150
    assert 150 < found.box.top < 350
    assert "it is slanted by 30 degrees" in found.reasons
    assert report.outcome is None


def test_a_mark_in_the_same_form_as_the_letterhead_goes_alone(tmp_path: Path) -> None:
    def both(canvas: Canvas) -> None:
        canvas.beginForm("paper")
        canvas.setFont("Helvetica", 30)
        canvas.drawString(60, 700, "Fjord House")
        words(canvas)
        canvas.endForm()

    def paper(canvas: Canvas) -> None:
        if not canvas.hasForm("paper"):
            both(canvas)
        canvas.doForm("paper")

    report, result = clean(clean_pdf(tmp_path / "paper.pdf", 3, paper))
    assert (report.outcome, [each.kind for each in report.suspects]) == (Outcome.REMOVED, ["text"]), report
    assert all("Fjord House" in text for text in drawn(result)[1])
    assert b"CONFIDENTIAL" not in everything(result)


def test_letters_that_are_set_one_by_one_are_one_mark(tmp_path: Path) -> None:
    def letters(canvas: Canvas) -> None:
        canvas.saveState()
        canvas.translate(120, 250)
        canvas.rotate(45)
        canvas.setFillGray(0.8)
        canvas.setFont("Helvetica-Bold", 60)
        for at, letter in enumerate("CONFIDENTIAL"):
            canvas.drawString(at * 45, 0, letter)
        canvas.restoreState()

    original, marked = clean_pdf(tmp_path / "clean.pdf"), clean_pdf(tmp_path / "marked.pdf", 4, letters)
    report, result = clean(marked)
    assert (report.outcome, len(report.suspects)) == (Outcome.REMOVED, 1)
    assert same(original, result)


def test_chinese_words_are_read(tmp_path: Path) -> None:
    pdfmetrics.registerFont(UnicodeCIDFont("STSong-Light"))

    def chinese(canvas: Canvas) -> None:
        canvas.saveState()
        canvas.translate(200, 300)
        canvas.rotate(45)
        canvas.setFillGray(0.5, 0.4)
        canvas.setFont("STSong-Light", 90)
        canvas.drawString(0, 0, "内部资料")
        canvas.restoreState()

    report, result = clean(clean_pdf(tmp_path / "one.pdf", 1, chinese))
    assert (report.outcome, report.candidates[0].text) == (Outcome.REMOVED, "内部资料")
    assert same(clean_pdf(tmp_path / "clean.pdf", 1), result)


def test_a_layer_that_stays_is_still_one(tmp_path: Path) -> None:
    _, marked = marked_pdf("layer", tmp_path, pages=3)
    report, result = clean(marked, pages=((1, 1),))
    assert report.outcome is Outcome.REMOVED
    with pikepdf.open(result) as pdf:
        assert len(pdf.Root.OCProperties.OCGs) == 1
    report, result = clean(marked)
    with pikepdf.open(result) as pdf:
        assert len(pdf.Root.OCProperties.OCGs) == 0


def test_links_outlines_labels_fields_and_tags_stay(tmp_path: Path) -> None:
    _, marked = marked_pdf("words", tmp_path, pages=3)
    rich = tmp_path / "rich.pdf"
    with pikepdf.open(marked) as pdf:
        first = pdf.pages[0]
        link = Dictionary(
            Type=Name.Annot,
            Subtype=Name.Link,
            Rect=Array([50, 700, 150, 720]),
            A=Dictionary(S=Name.URI, URI="https://a.example"),
        )
        field = pdf.make_indirect(
            Dictionary(
                Type=Name.Annot, Subtype=Name.Widget, FT=Name.Tx, T="name", V="Bo", Rect=Array([50, 600, 150, 620])
            )
        )
        first.Annots = Array([pdf.make_indirect(link), field])
        pdf.Root.AcroForm = Dictionary(Fields=Array([field]))
        pdf.Root.PageLabels = Dictionary(Nums=Array([0, Dictionary(S=Name.r)]))
        pdf.Root.StructTreeRoot = pdf.make_indirect(Dictionary(Type=Name.StructTreeRoot))
        with pdf.open_outline() as outline:
            outline.root.append(pikepdf.OutlineItem("Chapter", 1))
        pdf.docinfo["/Title"] = "Report"
        pdf.save(rich)
    report, result = clean(rich)
    assert report.outcome is Outcome.REMOVED, report
    with pikepdf.open(result) as pdf:
        subtypes = [str(each.Subtype) for each in pdf.pages[0].Annots]
        assert subtypes == ["/Link", "/Widget"]
        assert pdf.Root.AcroForm.Fields[0].V == "Bo"
        assert pdf.Root.PageLabels.Nums[1].S == "/r"
        assert "/StructTreeRoot" in pdf.Root
        assert str(pdf.docinfo["/Title"]) == "Report"
        with pdf.open_outline() as outline:
            assert outline.root[0].title == "Chapter"


def test_resources_that_pages_share_serve_the_pages_that_stay(tmp_path: Path) -> None:
    _, marked = marked_pdf("picture", tmp_path, pages=3)
    shared = tmp_path / "shared.pdf"
    with pikepdf.open(marked) as pdf:
        common = pdf.make_indirect(pdf.pages[0].Resources)
        for page in pdf.pages:
            for kind in ("/XObject", "/ExtGState"):
                if kind in page.Resources:
                    common[kind] = Dictionary(
                        {**dict(common.get(kind, {}).items()), **dict(page.Resources[kind].items())}
                    )
        for page in pdf.pages:
            del page.obj["/Resources"]
        pdf.Root.Pages.Resources = common
        pdf.save(shared)
    report, result = clean(shared, pages=((1, 2),))
    assert report.outcome is Outcome.REMOVED, report
    assert np.array_equal(drawn(shared)[0][2], drawn(result)[0][2])
    report, result = clean(shared)
    with pikepdf.open(result) as pdf:
        assert not [
            each for each in pdf.objects if isinstance(each, pikepdf.Stream) and each.get("/Subtype") == "/Image"
        ]


def sign(path: Path) -> Path:
    signed = path.with_name("signed.pdf")
    with pikepdf.open(path) as pdf:
        value = Dictionary(
            Type=Name.Sig, Filter=Name("/Adobe.PPKLite"), ByteRange=Array([0, 1, 2, 3]), Contents=b"\0" * 8
        )
        field = Dictionary(FT=Name.Sig, T="sig", V=pdf.make_indirect(value))
        pdf.Root.AcroForm = Dictionary(Fields=Array([pdf.make_indirect(field)]), SigFlags=3)
        pdf.save(signed)
    return signed


def test_a_signed_document_is_changed_only_when_told_to(tmp_path: Path) -> None:
    _, marked = marked_pdf("words", tmp_path, pages=2)
    signed = sign(marked)
    assert process(Order(str(signed))).candidates  # looking is no change
    with pytest.raises(DocumentSigned, match="--break-signature"):
        clean(signed)
    report, _ = clean(signed, break_signature=True)
    assert report.outcome is Outcome.REMOVED
    assert "the signature does not hold any more" in report.warnings


def test_an_encrypted_document_needs_its_password_and_keeps_it(tmp_path: Path) -> None:
    original, marked = marked_pdf("words", tmp_path, pages=2)
    locked = tmp_path / "locked.pdf"
    with pikepdf.open(marked) as pdf:
        pdf.save(locked, encryption=pikepdf.Encryption(user="sesame", owner="owner"))
    with pytest.raises(DocumentEncrypted, match="--password-file"):
        clean(locked)
    with pytest.raises(DocumentEncrypted, match="wrong"):
        clean(locked, password="open")
    report, result = clean(locked, password="sesame")
    assert report.outcome is Outcome.REMOVED
    with pytest.raises(pikepdf.PasswordError):
        pikepdf.open(result)
    unlocked = tmp_path / "unlocked.pdf"
    with pikepdf.open(result, password="sesame") as pdf:
        pdf.save(unlocked)
    assert same(original, unlocked)


def test_a_linearised_document_stays_one(tmp_path: Path) -> None:
    _, marked = marked_pdf("words", tmp_path, pages=2)
    fast = tmp_path / "fast.pdf"
    with pikepdf.open(marked) as pdf:
        pdf.save(fast, linearize=True, object_stream_mode=pikepdf.ObjectStreamMode.generate)
    report, result = clean(fast)
    assert report.outcome is Outcome.REMOVED
    with pikepdf.open(result) as pdf:
        assert pdf.is_linearized


def test_a_page_that_is_a_picture_is_said_to_be_one(tmp_path: Path) -> None:
    with pikepdf.new() as pdf:
        pdf.add_blank_page(page_size=(200, 200))
        image = pdf.make_stream(zlib.compress(bytes(100)))
        image.Type, image.Subtype, image.Width, image.Height = Name.XObject, Name.Image, 10, 10
        image.ColorSpace, image.BitsPerComponent, image.Filter = Name.DeviceGray, 8, Name.FlateDecode
        pdf.pages[0].Resources = Dictionary(XObject=Dictionary(I=image))
        pdf.pages[0].Contents = pdf.make_stream(b"q 200 0 0 200 0 0 cm /I Do Q")
        pdf.save(tmp_path / "scan.pdf")
    report, _ = clean(tmp_path / "scan.pdf")
    assert report.outcome is Outcome.NO_MARK
    assert "1 page is a picture" in report.warnings[0]


@pytest.mark.parametrize("content", [b"%PDF-1.7\n", b"%PDF-1.4 nothing else", b"%PDF-1.7\ntrailer<</Root 1 0 R>>"])
def test_a_broken_document_is_named(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "broken.pdf").write_bytes(content)
    with pytest.raises(DocumentUnreadable, match=r"broken\.pdf"):
        clean(tmp_path / "broken.pdf")


def test_a_form_that_draws_itself_ends(tmp_path: Path) -> None:
    with pikepdf.new() as pdf:
        pdf.add_blank_page()
        form = pdf.make_stream(b"/F Do 0 0 5 5 re f")
        form.Type, form.Subtype, form.BBox = Name.XObject, Name.Form, Array([0, 0, 9, 9])
        form.Resources = Dictionary(XObject=Dictionary(F=form))
        pdf.pages[0].Resources = Dictionary(XObject=Dictionary(F=form))
        pdf.pages[0].Contents = pdf.make_stream(b"/F Do Q Q ) ] >> BT (x Tj 1 2 /n cm EMC")
        pdf.save(tmp_path / "loop.pdf")
    assert clean(tmp_path / "loop.pdf")[0].outcome is Outcome.NO_MARK


def test_a_mark_that_is_left_in_another_way_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:  # W-07
    """The check does not trust the editor: one that takes off nothing is found out."""
    from headrace.removal.documents.pdf import page_editing

    _, marked = marked_pdf("words", tmp_path, pages=2)
    monkeypatch.setattr(page_editing, "_removal", lambda *_: {})
    report, result = clean(marked)
    assert report.outcome is Outcome.FAILED
    assert report.reason == "The mark is still on page 1."
    assert not result.exists()


def test_a_page_that_loses_more_than_the_mark_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from headrace.removal.documents.pdf import page_editing

    _, marked = marked_pdf("words", tmp_path, pages=2)
    monkeypatch.setattr(page_editing, "_assembled", lambda *_: [])
    report, _ = clean(marked)
    assert report.outcome is Outcome.FAILED
    assert report.reason is not None
    assert "letters are gone" in report.reason
