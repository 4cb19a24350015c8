"""Documents with marks for the benchmark and the tests, each made beside one without, by the tools that people use.

reportlab draws, qpdf (inside pikepdf) and pdftk put pages over pages, python-pptx makes decks. What Acrobat and
PowerPoint write is written as they write it: artifacts, layers, annotations, animations.
"""

import copy
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pikepdf
from lxml import etree
from pikepdf import Array, Dictionary, Name
from PIL import Image, ImageDraw
from pptx import Presentation
from pptx.dml.color import RGBColor
from pptx.oxml.ns import qn
from pptx.util import Inches, Pt
from reportlab.lib.pagesizes import A4
from reportlab.pdfgen.canvas import Canvas

LINES = 30
_P = "http://schemas.openxmlformats.org/presentationml/2006/main"

Draw = Callable[[Canvas], None]


def clean_pdf(path: Path, pages: int = 4, mark: Draw | None = None, *, below: bool = False) -> Path:
    """A letter: a head with a logo on every page, text, and the number of the page; and a mark, if one is given."""
    canvas = Canvas(str(path), pagesize=A4, invariant=True)
    for number in range(1, pages + 1):
        if mark is not None and below:
            mark(canvas)
        _letter(canvas, number)
        if mark is not None and not below:
            mark(canvas)
        canvas.showPage()
    canvas.save()
    return path


def _letter(canvas: Canvas, number: int) -> None:
    canvas.setFillColorRGB(0.1, 0.2, 0.7)
    canvas.rect(40, 808, 14, 14, fill=1, stroke=0)
    canvas.setFillGray(0)
    canvas.setFont("Helvetica", 9)
    canvas.drawString(60, 812, "Tern & Gull Ltd. - Annual report")
    for line in range(LINES):
        canvas.drawString(
            60, 780 - line * 24, f"{number}.{line}: the quick brown fox jumps over {number * line} lazy dogs"
        )
    canvas.drawCentredString(297, 30, f"Page {number}")


def words(canvas: Canvas) -> None:
    """Slanted and seen through, as most are."""
    canvas.saveState()
    canvas.translate(297, 421)
    canvas.rotate(45)
    canvas.setFillGray(0.5, 0.3)
    canvas.setFont("Helvetica-Bold", 80)
    canvas.drawCentredString(0, -20, "CONFIDENTIAL")
    canvas.restoreState()


def pale_words(canvas: Canvas) -> None:
    """Light grey and opaque, with words that only this one has."""
    canvas.saveState()
    canvas.translate(297, 421)
    canvas.rotate(30)
    canvas.setFillGray(0.8)
    canvas.setFont("Helvetica-Bold", 60)
    canvas.drawCentredString(0, 0, "Mara Lind, Oslo")
    canvas.restoreState()


def outlines(canvas: Canvas) -> None:
    """Letters as paths."""
    canvas.saveState()
    canvas.translate(150, 250)
    canvas.rotate(45)
    canvas.setFillGray(0.5, 0.4)
    for letter in range(6):
        x, path = letter * 70, canvas.beginPath()
        path.moveTo(x, 0)
        path.lineTo(x + 50, 0)
        path.curveTo(x + 60, 30, x + 60, 60, x + 50, 90)
        path.lineTo(x + 40, 90)
        path.curveTo(x + 45, 60, x + 45, 30, x + 40, 10)
        path.lineTo(x, 10)
        path.close()
        canvas.drawPath(path, fill=1, stroke=0)
    canvas.restoreState()


def tiles(canvas: Canvas) -> None:
    """Small words all over the page."""
    for x in range(0, 600, 150):
        for y in range(0, 850, 120):
            canvas.saveState()
            canvas.translate(x, y)
            canvas.rotate(25)
            canvas.setFillGray(0.4, 0.2)
            canvas.setFont("Helvetica", 14)
            canvas.drawString(0, 0, "hello@fjord.example")
            canvas.restoreState()


def _picture(folder: Path) -> Path:
    image = Image.new("RGBA", (400, 400), (0, 0, 0, 0))
    draw = ImageDraw.Draw(image)
    draw.ellipse((20, 20, 380, 380), outline=(200, 0, 0, 90), width=25)
    draw.rectangle((150, 180, 250, 220), fill=(200, 0, 0, 90))
    image.save(folder / "seen-through.png")
    return folder / "seen-through.png"


def _stamped(clean: Path, marked: Path, how: str) -> None:
    """By qpdf, which draws the stamp's page over or under every page."""
    stamp = clean_stamp(clean.with_name("stamp.pdf"))
    pikepdf.Job(["qpdf", str(clean), f"--{how}", str(stamp), "--repeat=1", "--", str(marked)]).run()


def clean_stamp(path: Path) -> Path:
    canvas = Canvas(str(path), pagesize=A4, invariant=True)
    words(canvas)
    canvas.showPage()
    canvas.save()
    return path


def _form(pdf: pikepdf.Pdf) -> Any:
    form = pdf.make_stream(b"BT /F1 80 Tf 0.5 g (CONFIDENTIAL) Tj ET")
    font = Dictionary(Type=Name.Font, Subtype=Name.Type1, BaseFont=Name("/Helvetica-Bold"))
    form.Type, form.Subtype, form.BBox = Name.XObject, Name.Form, Array([0, -20, 700, 80])
    form.Resources = Dictionary(Font=Dictionary(F1=font))
    return form


def _sectioned(clean: Path, marked: Path, *, layer: bool) -> None:
    """As Acrobat does it: an artifact, or a layer that can be switched off."""
    with pikepdf.open(clean) as pdf:
        group = pdf.make_indirect(Dictionary(Type=Name.OCG, Name="Watermark"))
        if layer:
            pdf.Root.OCProperties = Dictionary(
                OCGs=Array([group]), D=Dictionary(Order=Array([group]), ON=Array([group]))
            )
        for page in pdf.pages:
            page.Resources.XObject = Dictionary(Fm0=_form(pdf))
            page.Resources.ExtGState = Dictionary(GS9=Dictionary(ca=0.3))
            page.Resources.Properties = Dictionary(MC0=group) if layer else Dictionary()
            tag = "/OC /MC0" if layer else "/Artifact <</Subtype /Watermark /Type /Pagination>>"
            drawn = f"{tag} BDC q 0.7 0.7 -0.7 0.7 100 200 cm /GS9 gs /Fm0 Do Q EMC"
            page.contents_add(b"q", prepend=True)
            page.contents_add(b"Q " + drawn.encode())
        pdf.save(marked)


def _layered_artifact(clean: Path, marked: Path) -> None:
    """As pdfcpu does it: an artifact around a form that lies on a layer of its own, with another name."""
    with pikepdf.open(clean) as pdf:
        group = pdf.make_indirect(Dictionary(Type=Name.OCG, Name="Background"))
        pdf.Root.OCProperties = Dictionary(OCGs=Array([group]), D=Dictionary(Order=Array([group]), ON=Array([group])))
        for page in pdf.pages:
            form = _form(pdf)
            form.OC = group
            page.Resources.XObject = Dictionary(Fm0=form)
            page.Resources.ExtGState = Dictionary(GS9=Dictionary(ca=0.3))
            drawn = "/Artifact <</Subtype /Watermark>> BDC q 0.7 0.7 -0.7 0.7 100 200 cm /GS9 gs /Fm0 Do Q EMC"
            page.contents_add(b"q", prepend=True)
            page.contents_add(b"Q " + drawn.encode())
        pdf.save(marked)


def _annotated(clean: Path, marked: Path) -> None:
    with pikepdf.open(clean) as pdf:
        for page in pdf.pages:
            form = _form(pdf)
            form.Matrix = Array([0.7, 0.7, -0.7, 0.7, 0, 0])
            note = Dictionary(
                Type=Name.Annot, Subtype=Name.Watermark, Rect=Array([60, 150, 560, 650]), AP=Dictionary(N=form), F=4
            )
            page.Annots = Array([pdf.make_indirect(note)])
        pdf.save(marked)


def _nested(source: Path, marked: Path) -> None:
    """Every page becomes a form on an empty page, as imposition and "print to PDF" do it."""
    with pikepdf.open(source) as pdf, pikepdf.new() as outer:
        for page in pdf.pages:
            outer.add_blank_page(page_size=A4)
            outer.pages[-1].add_overlay(page, None)
        outer.save(marked)


def _patterned(clean: Path, marked: Path) -> None:
    with pikepdf.open(clean) as pdf:
        for page in pdf.pages:
            tile = pdf.make_stream(b"BT /F1 12 Tf .9 .4 -.4 .9 10 10 Tm 0.8 g (DO NOT COPY) Tj ET")
            tile.Type, tile.PatternType, tile.PaintType, tile.TilingType = Name.Pattern, 1, 1, 1
            tile.BBox, tile.XStep, tile.YStep = Array([0, 0, 120, 80]), 120, 80
            tile.Resources = _form(pdf).Resources
            page.Resources.Pattern = Dictionary(P1=tile)
            page.contents_add(b"q", prepend=True)
            page.contents_add(b"Q q /Pattern cs /P1 scn 0 0 595 842 re f Q")
        pdf.save(marked)


def _pdftk(clean: Path, marked: Path) -> None:
    program = shutil.which("pdftk")
    if program is None:
        raise FileNotFoundError("pdftk")
    stamp = clean_stamp(clean.with_name("stamp.pdf"))
    subprocess.run([program, str(clean), "stamp", str(stamp), "output", str(marked)], check=True, timeout=60)


def marked_pdf(kind: str, folder: Path, pages: int = 4) -> tuple[Path, Path]:
    """A document without the mark, and with it."""
    clean, marked = clean_pdf(folder / f"{kind}-clean.pdf", pages), folder / f"{kind}.pdf"
    PDF_KINDS[kind](clean, marked, pages)
    return clean, marked


def _drawn(mark: Draw, *, below: bool = False) -> Callable[[Path, Path, int], None]:
    def make(_clean: Path, marked: Path, pages: int) -> None:
        clean_pdf(marked, pages, mark, below=below)

    return make


def _nested_tiles(clean: Path, marked: Path, pages: int) -> None:
    _nested(clean_pdf(marked.with_name("inner.pdf"), pages, tiles), marked)
    _nested(clean, clean.with_name("outer.pdf"))


def _with_picture(_clean: Path, marked: Path, pages: int) -> None:
    picture = str(_picture(marked.parent))
    clean_pdf(marked, pages, lambda canvas: canvas.drawImage(picture, 150, 250, 300, 300, mask="auto") and None)


# By the tool or the way; pdftk is left out where it is not installed.
PDF_KINDS: dict[str, Callable[[Path, Path, int], None]] = {
    "words": _drawn(words),
    "pale words below": _drawn(pale_words, below=True),
    "pale words": _drawn(pale_words),
    "outlines": _drawn(outlines),
    "tiles": _drawn(tiles),
    "picture": _with_picture,
    "qpdf overlay": lambda clean, marked, _pages: _stamped(clean, marked, "overlay"),
    "qpdf underlay": lambda clean, marked, _pages: _stamped(clean, marked, "underlay"),
    "artifact": lambda clean, marked, _pages: _sectioned(clean, marked, layer=False),
    "layer": lambda clean, marked, _pages: _sectioned(clean, marked, layer=True),
    "layer in an artifact": lambda clean, marked, _pages: _layered_artifact(clean, marked),
    "annotation": lambda clean, marked, _pages: _annotated(clean, marked),
    "nested forms": _nested_tiles,
    "pattern": lambda clean, marked, _pages: _patterned(clean, marked),
    **({"pdftk stamp": lambda clean, marked, _pages: _pdftk(clean, marked)} if shutil.which("pdftk") else {}),
}


def clean_deck(slides: int = 5) -> Any:
    """Slides with a title, text, notes and a logo in the corner."""
    deck = Presentation()
    logo = Image.new("RGBA", (200, 80), (0, 0, 0, 0))
    ImageDraw.Draw(logo).rectangle((10, 10, 190, 70), fill=(10, 60, 160, 255))
    for number in range(slides):
        slide = deck.slides.add_slide(deck.slide_layouts[1])
        slide.shapes.title.text = f"Slide {number}"
        slide.placeholders[1].text = f"What slide {number} says"
        slide.shapes.add_picture(_stream(logo), Inches(8.5), Inches(0.1), Inches(1.2))
        slide.notes_slide.notes_text_frame.text = f"Note {number}"
    return deck


def _stream(image: Image.Image) -> Any:
    import io

    stream = io.BytesIO()
    image.save(stream, "PNG")
    stream.seek(0)
    return stream


def _colour(hexadecimal: str) -> Any:
    make: Any = RGBColor  # python-pptx has types for some of it
    return make(*bytes.fromhex(hexadecimal))


def add_words(
    slide: Any, text: str = "CONFIDENTIAL", *, angle: int = -45, alpha: int = 30, colour: str = "808080"
) -> Any:
    box = slide.shapes.add_textbox(Inches(1.5), Inches(3), Inches(7), Inches(1.5))
    box.rotation = angle
    run = box.text_frame.paragraphs[0].add_run()
    run.text, run.font.size, run.font.color.rgb = text, Pt(66), _colour(colour)
    if alpha < 100:
        etree.SubElement(run._r.find(".//" + qn("a:srgbClr")), qn("a:alpha")).set("val", str(alpha * 1000))
    return box


def _words_on(deck: Any, tree: Any) -> None:
    element = add_words(deck.slides[0])._element
    tree.append(copy.deepcopy(element))
    element.getparent().remove(element)


def _pictures(deck: Any) -> None:
    image = Image.new("RGBA", (400, 400), (0, 0, 0, 0))
    ImageDraw.Draw(image).ellipse((20, 20, 380, 380), outline=(200, 0, 0, 90), width=25)
    for slide in deck.slides:
        slide.shapes.add_picture(_stream(image), Inches(3), Inches(2), Inches(4))


def _faded_pictures(deck: Any) -> None:
    """An opaque picture that PowerPoint shows faded."""
    for slide in deck.slides:
        picture = slide.shapes.add_picture(
            _stream(Image.new("RGB", (300, 200), (40, 90, 60))), Inches(3), Inches(2), Inches(4)
        )
        etree.SubElement(picture._element.find(".//" + qn("a:blip")), qn("a:alphaModFix")).set("amt", "30000")


def _grouped(deck: Any) -> None:
    for slide in deck.slides:
        group = slide.shapes.add_group_shape()
        group._element.append(add_words(slide)._element)


def _animated(deck: Any, *, marked: bool = True) -> None:
    """Title and mark appear one after the other; on the third slide the mark alone does."""
    for number, slide in enumerate(deck.slides):
        shapes = [] if number == 2 else [slide.shapes.title.shape_id]
        builds = ""
        if marked:
            shapes.append(add_words(slide).shape_id)
            builds = f'<p:bldLst><p:bldP spid="{shapes[-1]}" grpId="0"/></p:bldLst>'
        effects = "".join(_EFFECT.format(shape=shape, first=10 * at) for at, shape in enumerate(shapes, 1))
        if effects:
            slide._element.append(etree.fromstring(_TIMING.format(effects=effects, builds=builds)))


DECK_KINDS: dict[str, Callable[[Any], object]] = {
    "words on slides": lambda deck: [add_words(slide) for slide in deck.slides],
    "pale words": lambda deck: [
        add_words(slide, "Mara Lind", angle=-30, alpha=100, colour="C8C8C8") for slide in deck.slides
    ],
    "words on the master": lambda deck: _words_on(deck, deck.slide_master.shapes._spTree),
    "words on the layout": lambda deck: _words_on(deck, deck.slide_layouts[1].shapes._spTree),
    "picture": _pictures,
    "faded picture": _faded_pictures,
    "group": _grouped,
    "animated": _animated,
}


def marked_deck(kind: str, folder: Path, slides: int = 5) -> tuple[Path, Path]:
    """A deck without the mark, and with it."""
    clean, marked = folder / f"{kind}-clean.pptx", folder / f"{kind}.pptx"
    deck = clean_deck(slides)
    if kind == "animated":
        _animated(deck, marked=False)
    deck.save(clean)
    deck = clean_deck(slides)
    DECK_KINDS[kind](deck)
    deck.save(marked)
    return clean, marked


_EFFECT = """<p:par><p:cTn id="{first}1" fill="hold"><p:stCondLst><p:cond delay="indefinite"/></p:stCondLst>
<p:childTnLst><p:par><p:cTn id="{first}2" fill="hold"><p:stCondLst><p:cond delay="0"/></p:stCondLst>
<p:childTnLst><p:par>
<p:cTn id="{first}3" presetID="1" presetClass="entr" presetSubtype="0" fill="hold" grpId="0" nodeType="clickEffect">
<p:stCondLst><p:cond delay="0"/></p:stCondLst><p:childTnLst><p:set><p:cBhvr><p:cTn id="{first}4" dur="1" fill="hold">
<p:stCondLst><p:cond delay="0"/></p:stCondLst></p:cTn><p:tgtEl><p:spTgt spid="{shape}"/></p:tgtEl><p:attrNameLst>
<p:attrName>style.visibility</p:attrName></p:attrNameLst></p:cBhvr><p:to><p:strVal val="visible"/></p:to></p:set>
</p:childTnLst></p:cTn></p:par></p:childTnLst></p:cTn></p:par></p:childTnLst></p:cTn></p:par>"""
_TIMING = (
    f'<p:timing xmlns:p="{_P}">'
    """<p:tnLst><p:par><p:cTn id="1" dur="indefinite" restart="never" nodeType="tmRoot"><p:childTnLst>
<p:seq concurrent="1" nextAc="seek"><p:cTn id="2" dur="indefinite" nodeType="mainSeq">
<p:childTnLst>{effects}</p:childTnLst></p:cTn>
<p:prevCondLst><p:cond evt="onPrev" delay="0"><p:tgtEl><p:sldTgt/></p:tgtEl></p:cond></p:prevCondLst>
<p:nextCondLst><p:cond evt="onNext" delay="0"><p:tgtEl><p:sldTgt/></p:tgtEl></p:cond></p:nextCondLst>
</p:seq></p:childTnLst></p:cTn></p:par></p:tnLst>{builds}</p:timing>"""
)
