"""Marks strangers' documents with programs that other people use, and tells what taking them off again leaves.

    python -m benchmarks.strangers_marked FOLDER [--most N] [--json] [--keep FOLDER]

FOLDER holds PDFs and slides without marks, as ``benchmarks.strangers_files`` fetches them. Each is marked in every way
that is installed: qpdf (over and under the page), pdftk (stamp and background), ImageMagick or reportlab's pictures as
stamps, layers, annotations, nested forms. The result is drawn beside the file that never had the mark.
"""

import argparse
import asyncio
import json
import math
import shutil
import subprocess
import tempfile
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pikepdf
import pypdfium2
from pikepdf import Array, Dictionary, Name
from PIL import Image, ImageDraw, ImageFont
from reportlab.pdfgen.canvas import Canvas
from rich.console import Console
from rich.table import Table

from benchmarks.strangers import Trial

console = Console(stderr=True)
_LONG_SIDE = 900.0
Marking = Callable[[Path, Path, Path], None]  # clean, marked, a folder to work in


@dataclass(frozen=True)
class Outcome:
    source: str
    kind: str
    file: str
    outcome: str
    worst: float  # the mean difference of the worst page from the clean file's, of 255
    before: float  # the same of the marked file
    kept: bool  # text, links, outlines, fields and labels


def _size(clean: Path) -> tuple[float, float]:
    with pikepdf.open(clean) as pdf:
        box = [float(each) for each in pdf.pages[0].mediabox]
        return box[2] - box[0], box[3] - box[1]


def _stamp(path: Path, size: tuple[float, float], draw: Callable[[Canvas, float], None]) -> Path:
    canvas = Canvas(str(path), pagesize=size, invariant=True)
    canvas.translate(size[0] / 2, size[1] / 2)
    draw(canvas, math.hypot(*size) / 1000)
    canvas.showPage()
    canvas.save()
    return path


def _words(canvas: Canvas, unit: float) -> None:
    canvas.rotate(45)
    canvas.setFillGray(0.5, 0.35)
    canvas.setFont("Helvetica-Bold", 85 * unit)
    canvas.drawCentredString(0, -28 * unit, "CONFIDENTIAL")


def _capitals(word: str, font: str, shade: float, alpha: float) -> Callable[[Canvas, float], None]:
    """A word in capitals, whose letters are the widest of these fonts."""

    def draw(canvas: Canvas, unit: float) -> None:
        canvas.rotate(45)
        canvas.setFillGray(shade, alpha)
        canvas.setFont(font, 120 * unit)
        canvas.drawCentredString(0, -40 * unit, word)

    return draw


def _foot_line(canvas: Canvas, unit: float) -> None:
    """Who bought this copy, in the margin of each page."""
    canvas.setFont("Helvetica", 9 * unit)
    canvas.drawCentredString(0, -_margin(canvas) + 14 * unit, "Licensed to jane@example.org, order 4711")


def _margin(canvas: Canvas) -> float:
    return float(canvas._pagesize[1]) / 2  # from the middle, where drawing begins


def _name(canvas: Canvas, unit: float) -> None:
    """Words that only this one has, pale and opaque."""
    canvas.rotate(32)
    canvas.setFillGray(0.82)
    canvas.setFont("Times-Bold", 60 * unit)
    canvas.drawCentredString(0, 0, "Licensed to M. Lind")


def _picture_stamp(folder: Path, *, magick: bool) -> Path:
    """A picture with an alpha channel: by ImageMagick where it is, by Pillow elsewhere."""
    target = folder / "stamp.png"
    program = shutil.which("magick") or shutil.which("convert")
    font = next((str(each) for each in Path("/usr/share/fonts").rglob("*Sans-Bold.ttf")), "Helvetica")
    if magick and program is not None:
        subprocess.run(
            [program, "-size", "900x320", "xc:none", "-font", font, "-pointsize", "150", "-fill", "rgba(200,30,30,.35)",
             "-gravity", "center", "-annotate", "20x20+0+0", "SAMPLE", f"PNG32:{target}"],
            check=True, capture_output=True, timeout=120,
        )  # fmt: skip
        return target
    image = Image.new("RGBA", (900, 900), (0, 0, 0, 0))
    draw = ImageDraw.Draw(image)
    draw.ellipse((80, 80, 820, 820), outline=(30, 60, 190, 80), width=40)
    draw.text((210, 390), "STUDIO LIND", font=ImageFont.load_default(90), fill=(30, 60, 190, 80))
    image.save(target)
    return target


def _drawn_picture(path: Path) -> Callable[[Canvas, float], None]:
    def draw(canvas: Canvas, unit: float) -> None:
        with Image.open(path) as image:
            width, height = 520 * unit, 520 * unit * image.height / image.width
        canvas.drawImage(str(path), -width / 2, -height / 2, width, height, mask="auto")

    return draw


def _by_qpdf(how: str, draw: Callable[[Canvas, float], None]) -> Marking:
    def mark(clean: Path, marked: Path, folder: Path) -> None:
        stamp = _stamp(folder / "stamp.pdf", _size(clean), draw)
        subprocess.run(
            ["qpdf", str(clean), f"--{how}", str(stamp), "--repeat=1", "--", str(marked)],
            capture_output=True,
            timeout=120,
        )

    return mark


def _by_pdftk(how: str) -> Marking:
    def mark(clean: Path, marked: Path, folder: Path) -> None:
        stamp = _stamp(folder / "stamp.pdf", _size(clean), _words)
        subprocess.run(["pdftk", str(clean), how, str(stamp), "output", str(marked)], capture_output=True, timeout=120)

    return mark


def _by_picture(*, magick: bool) -> Marking:
    def mark(clean: Path, marked: Path, folder: Path) -> None:
        _by_qpdf("overlay", _drawn_picture(_picture_stamp(folder, magick=magick)))(clean, marked, folder)

    return mark


def _on_layer(pdf: pikepdf.Pdf, stamp: pikepdf.Page, name: str) -> pikepdf.Object:
    """The stamp as a form on a layer of its own."""
    group = pdf.make_indirect(Dictionary(Type=Name.OCG, Name=name))
    pdf.Root.OCProperties = Dictionary(OCGs=Array([group]), D=Dictionary(Order=Array([group]), ON=Array([group])))
    form = pdf.copy_foreign(stamp.as_form_xobject())
    form.OC = group
    return form


def _layer(clean: Path, marked: Path, folder: Path) -> None:
    """A layer with a usual name, as drawing programs and Acrobat write one."""
    stamp = _stamp(folder / "stamp.pdf", _size(clean), _name)
    with pikepdf.open(clean) as pdf, pikepdf.open(stamp) as other:
        form = _on_layer(pdf, other.pages[0], "Watermark")
        for page in pdf.pages:
            page.add_overlay(form, None)
        pdf.save(marked)


def _artifact(clean: Path, marked: Path, folder: Path) -> None:
    """As pdfcpu: an artifact that is called a watermark, around a form with a layer of another name."""
    stamp = _stamp(folder / "stamp.pdf", _size(clean), _capitals("DRAFT", "Helvetica", 0.5, 0.4))
    with pikepdf.open(clean) as pdf, pikepdf.open(stamp) as other:
        form = _on_layer(pdf, other.pages[0], "Background")
        for page in pdf.pages:
            name = page.add_resource(form, Name.XObject)
            page.contents_add(b"q /Artifact <</Type /Pagination /Subtype /Watermark>> BDC %b Do EMC Q" % bytes(name),
                              prepend=True)  # fmt: skip
        pdf.save(marked)


def _direct(colour: bytes, font: str) -> Marking:
    """Words in the page's own instructions with a font of the standard 14, as pdf-lib and iText write them."""

    def mark(clean: Path, marked: Path, _: Path) -> None:
        width, height = _size(clean)
        with pikepdf.open(clean) as pdf:
            face = pdf.make_indirect(Dictionary(Type=Name.Font, Subtype=Name.Type1, BaseFont=Name(font)))
            shade = pdf.make_indirect(Dictionary(Type=Name.ExtGState, ca=0.3, CA=0.3))
            words = b"q %b gs %b BT %b 90 Tf 0.7071 0.7071 -0.7071 0.7071 %d %d Tm (SAMPLE) Tj ET Q"
            for page in pdf.pages:
                page.contents_coalesce()
                page.contents_add(b"q", prepend=True)
                names = page.add_resource(face, Name.Font), page.add_resource(shade, Name.ExtGState)
                page.contents_add(b"Q " + words % (bytes(names[1]), colour, bytes(names[0]), width / 4, height / 3))
            pdf.save(marked)

    return mark


def _nested(clean: Path, marked: Path, folder: Path) -> None:
    """A form in a form in a form, as programs leave it that stamp what was stamped before."""
    stamp = _stamp(folder / "stamp.pdf", _size(clean), _words)
    for _ in range(2):
        outer = stamp.with_name(f"outer-{stamp.name}")
        with pikepdf.open(stamp) as inner, pikepdf.new() as pdf:
            pdf.add_blank_page(page_size=_size(stamp))
            pdf.pages[0].add_overlay(inner.pages[0], None)
            pdf.save(outer)
        stamp = outer
    with pikepdf.open(clean) as pdf, pikepdf.open(stamp) as other:
        for page in pdf.pages:
            page.add_overlay(other.pages[0], None)
        pdf.save(marked)


def _annotation(clean: Path, marked: Path, folder: Path) -> None:
    stamp = _stamp(folder / "stamp.pdf", _size(clean), _words)
    with pikepdf.open(clean) as pdf, pikepdf.open(stamp) as other:
        for page in pdf.pages:
            form = pdf.copy_foreign(other.pages[0].as_form_xobject())
            note = Dictionary(
                Type=Name.Annot,
                Subtype=Name.Watermark,
                Rect=page.mediabox,
                F=4,
                AP=Dictionary(N=pdf.make_indirect(form)),
            )
            page.obj.Annots = Array([*page.obj.get("/Annots", Array()), pdf.make_indirect(note)])
        pdf.save(marked)


KINDS: dict[str, Marking] = {
    "qpdf overlay": _by_qpdf("overlay", _words),
    "qpdf underlay": _by_qpdf("underlay", _words),
    "qpdf own words": _by_qpdf("overlay", _name),
    "pdftk stamp": _by_pdftk("stamp"),
    "pdftk background": _by_pdftk("background"),
    "ImageMagick picture": _by_picture(magick=True),
    "seen-through logo": _by_picture(magick=False),
    "layer": _layer,
    "nested forms": _nested,
    "annotation": _annotation,
    "capitals, Helvetica-Bold": _by_qpdf("overlay", _capitals("DRAFT", "Helvetica-Bold", 0.6, 1)),
    "capitals, Times-Bold": _by_qpdf("overlay", _capitals("SAMPLE", "Times-Bold", 0.4, 0.3)),
    "capitals, Courier-Bold": _by_qpdf("underlay", _capitals("COPY", "Courier-Bold", 0.8, 1)),
    "artifact around a layer": _artifact,
    "pdf-lib words": _direct(b"0.8 0.1 0.1 rg", "/Helvetica-Bold"),
    "iText words": _direct(b"0.6 g", "/Helvetica"),
    "foot line": _by_qpdf("overlay", _foot_line),
}


def drawn(path: Path, most: int = 12) -> tuple[list[Any], list[str]]:
    document = pypdfium2.PdfDocument(path)
    try:
        pages, texts = [], []
        for number in range(min(len(document), most)):
            page = document[number]
            scale = min(_LONG_SIDE / max(*page.get_size(), 1.0), 4.0)
            pages.append(page.render(scale=scale).to_numpy().astype(np.float32))
            texts.append("".join(page.get_textpage().get_text_range(errors="replace").split()))
        return pages, texts
    finally:
        document.close()


def furniture(path: Path) -> Any:
    """What has to stay beside what is drawn: outlines, links, fields, labels, attached files, structure, metadata."""
    with pikepdf.open(path) as pdf:
        links = []
        for page in pdf.pages:
            notes = page.obj.get("/Annots", Array())
            links.append(sorted(str(each.get("/Subtype")) for each in notes if isinstance(each, Dictionary)))
        with pdf.open_outline() as outline:
            titles = [str(each.title) for each in outline.root]
        form = pdf.Root.get("/AcroForm")
        fields = len(form.get("/Fields", [])) if isinstance(form, Dictionary) else 0
        keys = sorted(
            key
            for key in ("/PageLabels", "/Names", "/Dests", "/StructTreeRoot", "/Lang", "/Metadata")
            if key in pdf.Root
        )
        return [links, titles, fields, keys, len(pdf.pages), {str(k): str(v) for k, v in pdf.docinfo.items()}]


def difference(clean: list[Any], other: list[Any]) -> float:
    if [each.shape for each in clean] != [each.shape for each in other]:
        return 255.0
    return max((float(np.abs(a - b).mean()) for a, b in zip(clean, other, strict=True)), default=0.0)


async def measure(files: list[tuple[str, Path]], keep: Path | None) -> list[Outcome]:
    outcomes: list[Outcome] = []
    with tempfile.TemporaryDirectory(prefix="strangers-") as name:
        folder = Path(name)
        trial = Trial(folder / "scratch", folder / "results", 120)
        (folder / "scratch").mkdir()
        try:
            for source, path in files:
                for kind, mark in KINDS.items():
                    outcome = await _one(trial, folder, source, path, kind, mark, keep)
                    if outcome is not None:
                        outcomes.append(outcome)
                console.print(f"  {len(outcomes)}: {source}/{path.name}", highlight=False)
        finally:
            await trial.close()
    return outcomes


async def _one(
    trial: Trial, folder: Path, source: str, path: Path, kind: str, mark: Marking, keep: Path | None
) -> Outcome | None:
    marked, work = folder / "marked.pdf", folder / "work"
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir()
    marked.unlink(missing_ok=True)
    try:
        clean, text = drawn(path)
        kept = furniture(path)
        mark(path, marked, work)
        before, _ = drawn(marked)
    except (pikepdf.PdfError, pypdfium2.PdfiumError, OSError, ValueError, TypeError, KeyError, AttributeError):
        return None  # one that the other program does not take
    was = difference(clean, before)
    if was == 0:
        return None  # its pages hide the mark
    tried = await trial.run(marked, "marked")
    result = folder / "results" / "marked" / "marked.clean.pdf"
    worst, same = was, False
    if tried.outcome == "changed":
        after, after_text = drawn(result)
        worst = difference(clean, after)
        same = after_text == text and furniture(result) == kept
    if keep is not None and (tried.outcome != "changed" or worst > 0.05 or not same):
        shutil.copyfile(marked, keep / f"{path.stem}--{kind.replace(' ', '-')}.pdf")
    return Outcome(
        source, kind, path.name, f"{tried.outcome} {tried.code}".strip(), round(worst, 4), round(was, 4), same
    )


def chosen(folder: Path, most: int) -> list[tuple[str, Path]]:
    """Whole, open, unsigned PDFs of every source, evenly."""
    by_source: dict[str, list[Path]] = defaultdict(list)
    for path in sorted(folder.rglob("*.pdf")):
        try:
            with pikepdf.open(path) as pdf:
                if pdf.is_encrypted or pdf.get_warnings() or len(pdf.pages) == 0 or b"/ByteRange" in path.read_bytes():
                    continue
        except (pikepdf.PasswordError, pikepdf.PdfError, OSError, ValueError, TypeError, KeyError):
            continue
        by_source[path.relative_to(folder).parts[0]].append(path)
    each = max(1, most // max(len(by_source), 1))
    return [
        (source, paths[round(at * (len(paths) - 1) / max(min(each, len(paths)) - 1, 1))])
        for source, paths in sorted(by_source.items())
        for at in range(min(each, len(paths)))
    ]


def show(outcomes: list[Outcome]) -> None:
    for title, key in (("marked by", "kind"), ("source", "source")):
        table = Table(title, "files", "clean", "same pixels", "all kept", "worst difference", "not taken off")
        rows: dict[str, list[Outcome]] = defaultdict(list)
        for each in outcomes:
            rows[getattr(each, key)].append(each)
        for name, group in sorted(rows.items()):
            gone = [each for each in group if each.outcome == "changed"]
            others = sorted({each.outcome for each in group} - {"changed"})
            table.add_row(
                name, str(len(group)), str(len(gone)), str(sum(each.worst < 0.05 for each in gone)),
                str(sum(each.kept for each in gone)), f"{max((each.worst for each in gone), default=0):.3f}",
                ", ".join(f"{sum(each.outcome == name for each in group)} {name}" for name in others),
            )  # fmt: skip
        Console(width=160).print(table)
    for each in outcomes:
        if each.outcome != "changed" or each.worst >= 0.05 or not each.kept:
            print(
                f"{each.kind:20} {each.source}/{each.file}: {each.outcome}, differs by {each.worst} "
                f"(was {each.before}), {'all' if each.kept else 'not all'} kept"
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--most", type=int, default=40, help="documents that are marked, in every way each")
    parser.add_argument("--keep", type=Path, help="where marked files go that were not cleaned as they should be")
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    if asked.keep is not None:
        asked.keep.mkdir(parents=True, exist_ok=True)
    outcomes = asyncio.run(measure(chosen(asked.folder, asked.most), asked.keep))
    show(outcomes)
    if asked.json:
        gone = [each for each in outcomes if each.outcome == "changed"]
        print(json.dumps({
            "marked_files": len(outcomes), "marked_clean": len(gone),
            "marked_same_pixels": sum(each.worst < 0.05 for each in gone),
            "marked_all_kept": sum(each.kept for each in gone),
            "marked_worst": max((each.worst for each in gone), default=0.0),
            # Removed, or asked about with the mark in the list.
            "documents_gone": round(sum(each.outcome.startswith(("changed", "asks")) for each in outcomes)
                                    / max(len(outcomes), 1), 4),
            "documents_exact": round(sum(each.worst < 0.05 and each.kept for each in gone) / max(len(gone), 1), 4),
        }))  # fmt: skip


if __name__ == "__main__":
    main()
