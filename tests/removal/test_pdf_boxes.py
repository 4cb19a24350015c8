"""A box on a page is a manual way: what is drawn in it goes, though nothing says that it is a mark."""

from pathlib import Path

import pikepdf
import pypdfium2
import pytest
from pikepdf import Dictionary, Name, Stream

from benchmarks.in_process import process
from headrace.removal.order import Hint, Order
from headrace.removal.report import Outcome, Report

STAMP = (
    b"q 0.94 0.34 -0.34 0.94 420 700 cm 0.8 0 0 RG 0.8 0 0 rg 2 w 0 0 120 40 re S "
    b"BT /B 22 Tf 14 12 Td (APPROVED) Tj ET Q\n"
)
BOX = (380, 50, 200, 120)  # in points from the upper left corner


def make(path: Path, *, stamped: set[int], pages: int = 3) -> Path:
    """Pages of text; a red frame with a word, slanted, on some of them; a rule that is in the box and elsewhere."""
    pdf = pikepdf.new()
    fonts = {
        name: pdf.make_indirect(Dictionary(Type=Name.Font, Subtype=Name.Type1, BaseFont=Name(f"/{face}")))
        for name, face in (("F", "Helvetica"), ("B", "Helvetica-Bold"))
    }
    for number in range(1, pages + 1):
        lines = b" ".join(b"(Line %d of page %d.) Tj T*" % (line, number) for line in range(40))
        content = b"BT /F 11 Tf 72 620 Td 14 TL " + lines + b" ET\n"
        content += b"q 1 0 0 1 400 690 cm 0 0 100 1 re f Q q 1 0 0 1 72 60 cm 0 0 100 1 re f Q\n"
        page = pdf.add_blank_page(page_size=(595, 842))
        page.obj.Resources = Dictionary(Font=Dictionary({f"/{name}": font for name, font in fonts.items()}))
        page.obj.Contents = Stream(pdf, content + (STAMP if number in stamped else b""))
    pdf.save(path)
    return path


def cleaned(source: Path, **hint: object) -> Report:
    order = Order(str(source), str(source.with_suffix(".clean.pdf")), mode="MANUAL", hints=(Hint(boxes=[BOX], **hint),))
    return process(order)


def texts(path: Path) -> list[str]:
    with pypdfium2.PdfDocument(path) as document:
        return [page.get_textpage().get_text_range() for page in document]


@pytest.mark.parametrize("stamped", [{1}, {2}, {1, 2, 3}])
def test_a_framed_stamp_goes_by_a_box(stamped: set[int], tmp_path: Path) -> None:  # W-04
    source = make(tmp_path / "in.pdf", stamped=stamped)
    report = cleaned(source)
    assert report.outcome is Outcome.REMOVED, report
    (taken,) = (each for each in report.candidates if each.id in report.removed)
    assert (set(taken.pages), taken.reasons) == (stamped, ("the user drew a box around it",))
    result = source.with_suffix(".clean.pdf")
    assert all("APPROVED" not in text and text.count("Line") == 40 for text in texts(result))
    for number, (before, after) in enumerate(
        zip(pikepdf.open(source).pages, pikepdf.open(result).pages, strict=True), 1
    ):
        rules = [page.Contents.read_bytes().count(b"100 1 re") for page in (before, after)]
        assert rules == [2, 2]  # the rule in the box is drawn elsewhere, too
        assert (b"120 40 re" in after.Contents.read_bytes()) is False, number


def test_a_box_for_some_pages_leaves_the_others(tmp_path: Path) -> None:
    source = make(tmp_path / "in.pdf", stamped={1, 2, 3})
    assert cleaned(source, pages=(2, 2)).outcome is Outcome.REMOVED
    assert ["APPROVED" in text for text in texts(source.with_suffix(".clean.pdf"))] == [True, False, True]


def test_pages_that_are_not_ordered_say_nothing_of_a_box(tmp_path: Path) -> None:
    """Another thing in the box on a page before hid the stamp."""
    source = make(tmp_path / "in.pdf", stamped={2})
    with pikepdf.open(source, allow_overwriting_input=True) as pdf:
        pdf.pages[0].contents_add(b"BT /B 14 Tf 430 720 Td (Chapter 1) Tj ET")
        pdf.save(source)
    result = tmp_path / "out.pdf"
    process(Order(str(source), str(result), mode="MANUAL", hints=(Hint(boxes=[BOX]),), pages=((2, 3),)))
    first, second, _ = texts(result)
    assert ("Chapter 1" in first, "APPROVED" in second) == (True, False)


def test_a_box_around_nothing_says_so(tmp_path: Path) -> None:
    source = make(tmp_path / "in.pdf", stamped=set())
    report = process(
        Order(str(source), str(tmp_path / "out.pdf"), mode="MANUAL", hints=(Hint(boxes=[(400, 300, 150, 80)]),))
    )
    assert report.outcome is Outcome.NO_MARK
    assert not (tmp_path / "out.pdf").exists()


def test_a_slanted_stamp_on_most_pages_is_listed(tmp_path: Path) -> None:
    report = process(Order(str(make(tmp_path / "in.pdf", stamped={1, 2, 3})), mode="MANUAL"))
    assert [each.text for each in report.candidates] == ["APPROVED"]


def test_what_lies_in_a_box_on_one_page_stays_elsewhere_on_another(tmp_path: Path) -> None:
    """The signatures of all pages went from all pages: a word in the body of the second one was lost."""
    source = make(tmp_path / "in.pdf", stamped=set(), pages=2)
    with pikepdf.open(source, allow_overwriting_input=True) as pdf:
        pdf.pages[0].contents_add(b"BT /B 14 Tf 430 740 Td (ACME) Tj ET BT /B 14 Tf 430 710 Td (Paid) Tj ET")
        pdf.pages[1].contents_add(b"BT /B 14 Tf 430 740 Td (ACME) Tj ET BT /B 14 Tf 300 100 Td (Paid) Tj ET")
        pdf.save(source)
    assert cleaned(source).outcome is Outcome.REMOVED
    first, second = texts(source.with_suffix(".clean.pdf"))
    assert ("ACME" in first, "Paid" in first, "ACME" in second, "Paid" in second) == (False, False, False, True)


def test_boxes_for_different_pages_do_not_take_from_each_other(tmp_path: Path) -> None:
    source = make(tmp_path / "in.pdf", stamped=set(), pages=2)
    with pikepdf.open(source, allow_overwriting_input=True) as pdf:
        for page in pdf.pages:
            page.contents_add(b"BT /B 14 Tf 430 740 Td (ACME) Tj ET BT /B 14 Tf 300 30 Td (Paid) Tj ET")
        pdf.save(source)
    result = tmp_path / "out.pdf"
    hints = (Hint(boxes=[(290, 795, 60, 25)], pages=(1, 1)), Hint(boxes=[(420, 85, 60, 25)], pages=(2, 2)))
    process(Order(str(source), str(result), mode="MANUAL", hints=hints))
    assert [("ACME" in text, "Paid" in text) for text in texts(result)] == [(True, False), (False, True)]
