"""How exactly marks are taken off documents, and how fast: functions for ``benchmarks.removal``, and a table.

python -m benchmarks.removal_documents [--json]
"""

import argparse
import json
import shutil
import subprocess
import tempfile
import time
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pypdfium2
from lxml import etree
from numpy.typing import NDArray

from benchmarks.document_marks import DECK_KINDS, PDF_KINDS, clean_pdf, marked_deck, marked_pdf, words
from benchmarks.in_process import process
from headrace.removal.order import Order
from headrace.removal.report import Outcome, Report

_SCALE = 1.5
_LOST = 255.0  # the difference where a mark was not taken off, or text was lost


def pdf_diff() -> dict[str, float]:
    """For each kind, the mean difference of pixels, of 255, of the result and a document that never had the mark."""
    with tempfile.TemporaryDirectory() as folder:
        return {kind: _pdf_difference(kind, Path(folder)) for kind in PDF_KINDS}


def pptx_diff() -> dict[str, float]:
    """The same for slides, drawn by LibreOffice where it is; by their XML elsewhere: 0 is the same, 255 another."""
    with tempfile.TemporaryDirectory() as folder:
        return {kind: _deck_difference(kind, Path(folder)) for kind in DECK_KINDS}


def pdf_100_pages_s(pages: int = 100) -> float:
    """Seconds for reading, cleaning, writing and checking so many pages."""
    with tempfile.TemporaryDirectory() as folder:
        marked = clean_pdf(Path(folder, "long.pdf"), pages, words)
        began = time.perf_counter()
        report = _clean(marked, Path(folder, "result.pdf"))
        seconds = time.perf_counter() - began
    assert report.outcome is Outcome.REMOVED, report
    return round(seconds, 2)


def _clean(source: Path, result: Path) -> Report:
    return process(Order(str(source), result=str(result)))


def _pdf_difference(kind: str, folder: Path) -> float:
    clean, marked = marked_pdf(kind, folder)
    result = folder / "result.pdf"
    if _clean(marked, result).outcome is not Outcome.REMOVED:
        return _LOST
    return _rendered_difference(clean, result)


def _rendered_difference(clean: Path, result: Path) -> float:
    (before, text_before), (after, text_after) = drawn(clean), drawn(result)
    if text_before != text_after or [page.shape for page in before] != [page.shape for page in after]:
        return _LOST
    return round(float(np.mean([np.abs(a - b).mean() for a, b in zip(before, after, strict=True)])), 4)


def drawn(path: Path) -> tuple[list[NDArray[np.float32]], list[str]]:
    """All pages as PDFium draws and reads them."""
    document = pypdfium2.PdfDocument(path)
    try:
        pixels = [page.render(scale=_SCALE).to_numpy().astype(np.float32) for page in document]
        return pixels, [page.get_textpage().get_text_range() for page in document]
    finally:
        document.close()


def _deck_difference(kind: str, folder: Path) -> float:
    clean, marked = marked_deck(kind, folder)
    result = folder / "result.pptx"
    if _clean(marked, result).outcome is not Outcome.REMOVED or slides_xml(clean) != slides_xml(result):
        return _LOST
    office = shutil.which("soffice")
    if office is None:
        return 0.0
    return _rendered_difference(*(_to_pdf(office, deck, folder) for deck in (clean, result)))


def _to_pdf(office: str, deck: Path, folder: Path) -> Path:
    profile = f"-env:UserInstallation={(folder / 'profile').as_uri()}"
    command = [office, profile, "--headless", "--convert-to", "pdf", "--outdir", str(folder), str(deck)]
    subprocess.run(command, check=True, capture_output=True, timeout=300)
    return folder / f"{deck.stem}.pdf"


def slides_xml(path: Path) -> dict[str, bytes]:
    """Slides, layouts, masters and notes in their canonical form."""
    with zipfile.ZipFile(path) as package:
        names = [name for name in package.namelist() if name.startswith("ppt/") and name.endswith(".xml")]
        return {name: etree.tostring(etree.fromstring(package.read(name)), method="c14n") for name in names}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    pdf, pptx, seconds = pdf_diff(), pptx_diff(), pdf_100_pages_s()
    figures: dict[str, Any] = {
        "pdf_diff": max(pdf.values()), "pptx_diff": max(pptx.values()), "pdf_100_pages_s": seconds,
    }  # fmt: skip
    if asked.json:
        print(json.dumps(figures))
        return
    for name, kinds in (("PDF", pdf), ("PPTX", pptx)):
        for kind, difference in kinds.items():
            print(f"{name:5} {kind:22} {difference:.3f}")
    print(f"100 pages {seconds:.2f} s")


if __name__ == "__main__":
    main()
