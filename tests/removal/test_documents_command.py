"""PDFs and slides on the command line, each in its child process."""

import json
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from benchmarks.document_marks import clean_pdf, marked_deck, marked_pdf, pale_words, words
from headrace.removal.errors import DocumentUnreadable, TargetExists, TargetUnusable
from headrace.removal.order import Order
from headrace.removal.runner import carry_out
from headrace.removal.thresholds import MAX_FURNITURE_SCORE
from tests.cli.conftest import Call, call

__all__ = ["call"]


def test_detect_lists_what_may_be_a_mark(call: Call, tmp_path: Path) -> None:
    marked_pdf("words", tmp_path, pages=3)
    told = call("detect", "words.pdf")
    assert told.code == 0, told.err
    assert "CONFIDENTIAL" in told.out
    assert "1-3" in told.out
    assert "remove takes all of them off" in told.err
    assert call("detect", "words.pdf", "--overlay", "seen.png").code == 0
    with Image.open(tmp_path / "seen.png") as picture:
        colours = {colour for _, colour in picture.getcolors(1 << 24) or ()}
    assert (200, 0, 0) in colours
    told = call("detect", "words-clean.pdf", "--json")
    assert told.code == 1
    assert all(each["score"] == MAX_FURNITURE_SCORE for each in json.loads(told.out)["candidates"])


def test_remove_takes_many_files_and_goes_on_after_a_bad_one(call: Call, tmp_path: Path) -> None:
    marked_pdf("words", tmp_path, pages=2)
    marked_deck("words on slides", tmp_path, slides=2)
    (tmp_path / "broken.pdf").write_bytes(b"%PDF-1.7 nothing")
    files = ("words.pdf", "words on slides.pptx", "broken.pdf", "words-clean.pdf")
    refused = call("remove", *files, "-o", "clean")
    assert refused.code == 2
    assert "Make it first" in refused.err
    (tmp_path / "clean").mkdir()
    done = call("remove", *files, "-o", "clean", "--json")
    assert done.code == 1
    said = json.loads(done.out)
    assert [each.get("outcome") or each["error"] for each in said] == [
        "removed", "removed", "document_unreadable", "no_mark",
    ]  # fmt: skip
    assert sorted(file.name for file in (tmp_path / "clean").iterdir()) == ["words on slides.pptx", "words.pdf"]
    assert said[0]["check"]["residue_after"] == 0


def test_a_folder_is_cleaned_again_without_its_own_results(call: Call, tmp_path: Path) -> None:
    (folder := tmp_path / "in").mkdir()
    marked_pdf("words", tmp_path, pages=1)[1].rename(folder / "words.pdf")
    (folder / "notes.txt").write_text("no picture")
    first = call("remove", "in", "--preview")
    assert (first.code, first.out.strip()) == (1, "in/words.clean.pdf"), first.err
    assert first.err.splitlines()[-1] == "2 files: 1 cleaned, 1 could not be worked on"
    with Image.open(folder / "words.clean.preview.png") as sides:
        left, right = (sides.crop((at, 0, at + sides.width // 2, sides.height)) for at in (0, sides.width // 2))
    assert left.tobytes() != right.tobytes()
    names = sorted(each.name for each in folder.iterdir())
    again = call("remove", "in", "--preview")
    assert again.code == 1
    assert "exists: name another file" in again.err
    assert "of 2:" in again.err
    assert sorted(each.name for each in folder.iterdir()) == names


def test_a_doubtful_mark_is_taken_off_by_its_number(call: Call, tmp_path: Path) -> None:
    clean_pdf(tmp_path / "one.pdf", 1, pale_words)
    asked = call("remove", "one.pdf")
    assert asked.code == 1
    assert "name the marks with `--only`" in asked.err
    done = call("remove", "one.pdf", "--mode", "manual", "--only", "1")
    assert (done.code, done.out.strip()) == (0, "one.clean.pdf"), done.err
    assert call("remove", "one.pdf", "--mode", "manual").code == 2
    assert "no candidate 3" in call("remove", "one.pdf", "--only", "3", "--force").err


def test_a_box_chooses_among_the_marks_of_a_document(call: Call, tmp_path: Path) -> None:
    clean_pdf(tmp_path / "one.pdf", 1, pale_words)
    left, top, width, height = json.loads(call("detect", "one.pdf", "--json").out)["candidates"][0]["box"]
    beside = call("remove", "one.pdf", "--box", f"{left + width + 5:.0f},{top + height + 5:.0f},10,10")
    assert beside.code == 1
    assert "draw a box around them" in beside.err
    done = call("remove", "one.pdf", "--box", f"{left:.0f},{top:.0f},{width:.0f},{height:.0f}")
    assert (done.code, done.out.strip()) == (0, "one.clean.pdf"), done.err


def test_what_stays_and_what_to_do_next_is_said(call: Call, tmp_path: Path) -> None:
    def both(canvas: Any) -> None:
        words(canvas)
        pale_words(canvas)

    clean_pdf(tmp_path / "two.pdf", 1, both)
    done = call("remove", "two.pdf")
    assert done.code == 0, done.err
    assert "1 other candidate stays, score 0." in done.err
    assert "--only 1 --only 2" in " ".join(done.err.split())
    chosen = call("remove", "two.pdf", "--only", "1", "--force")
    assert "other candidate" not in chosen.err
    clean_pdf(tmp_path / "none.pdf", 1)
    assert "--box" in call("remove", "none.pdf").err


def test_options_that_make_no_sense_are_refused(call: Call, tmp_path: Path) -> None:
    clean_pdf(tmp_path / "a.pdf", 1)
    clean_pdf(tmp_path / "b.pdf", 1)
    for pages in ("0-3", "9-2", "x", "1,,2"):
        refused = call("remove", "a.pdf", "--pages", pages)
        assert refused.code == 2
        assert "is not pages such as 2-9" in " ".join(refused.err.split())
    assert call("remove", "a.pdf", "b.pdf", "--only", "1").code == 2
    assert call("remove", "a.pdf", "--password-file", "nowhere").code == 2
    assert "not pixels" in call("detect", "a.pdf", "--mask", "m.png").err


def test_places_are_judged_before_anything_is_computed(tmp_path: Path) -> None:
    source = clean_pdf(tmp_path / "a.pdf", 1)
    with pytest.raises(TargetUnusable, match=r"let it end in \.pdf"):
        carry_out(Order(str(source), result=str(tmp_path / "b.docx")))
    with pytest.raises(TargetExists, match="is the document itself"):
        carry_out(Order(str(source), result=str(source)))


def test_a_page_that_unpacks_without_end_is_refused(tmp_path: Path) -> None:
    import zlib

    import pikepdf

    packer = zlib.compressobj(1)
    packed = b"".join([*(packer.compress(bytes(15_000_000)) for _ in range(10)), packer.flush()])
    with pikepdf.new() as pdf:
        pdf.add_blank_page()
        stream = pdf.make_stream(packed)
        stream.Filter = pikepdf.Name.FlateDecode
        pdf.pages[0].Contents = stream
        pdf.save(tmp_path / "bomb.pdf")
    assert (tmp_path / "bomb.pdf").stat().st_size < 2_000_000
    with pytest.raises(DocumentUnreadable, match=r"bomb\.pdf cannot be read: a page unpacks to more than"):
        carry_out(Order(str(tmp_path / "bomb.pdf")))
