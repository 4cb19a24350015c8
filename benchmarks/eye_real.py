"""Marks that other programs put on: ImageMagick, ffmpeg, LibreOffice, Pillow with another font; those installed here.

python -m benchmarks.eye_real [--photos FOLDER]
"""

import argparse
import base64
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

import cv2
import numpy as np
from PIL import Image, ImageDraw, ImageFont

from benchmarks.eye import Picture, filed, grown, photographs, psnr
from headrace.removal.images.eye.detecting import detect
from headrace.removal.images.eye.solving import solve

FONT = "/usr/share/fonts/truetype/dejavu/DejaVuSans-Bold.ttf"
PHOTOS = 4

Put = Callable[[Path, Path, Path], None]  # clean file, marked file, a folder to work in


def _run(*words: object) -> None:
    subprocess.run([str(w) for w in words], check=True, capture_output=True, timeout=180)


def _logo(folder: Path) -> Path:
    image = Image.new("RGBA", (260, 120))
    pen = ImageDraw.Draw(image)
    pen.rounded_rectangle((4, 4, 256, 116), 24, outline=(255, 255, 255, 255), width=8)
    pen.text((130, 60), "ACME", font=ImageFont.truetype(FONT, 64), fill=(255, 255, 255, 255), anchor="mm")
    image.save(folder / "logo.png")
    return folder / "logo.png"


def dissolve(clean: Path, marked: Path, folder: Path) -> None:
    _run("composite", "-dissolve", "45", "-gravity", "southeast", "-geometry", "+30+30", _logo(folder), clean, marked)


def watermark(clean: Path, marked: Path, folder: Path) -> None:
    _run("composite", "-watermark", "40x100", "-gravity", "center", _logo(folder), clean, marked)


def annotate(clean: Path, marked: Path, _folder: Path) -> None:
    text = ("-annotate", "330x330+0+0", "Copyright ACME")
    _run(
        "convert-im6", clean, "-font", FONT, "-pointsize", 80, "-gravity", "center", "-fill", "#ffffff66", *text, marked
    )


def drawtext(clean: Path, marked: Path, _folder: Path) -> None:
    text = f"drawtext=fontfile={FONT}:text='ACME video':fontcolor=white@0.5:fontsize=72:x=(w-tw)/2:y=h-th-60"
    _run("ffmpeg", "-y", "-i", clean, "-vf", text, marked)


def overlay(clean: Path, marked: Path, folder: Path) -> None:
    graph = "[1]format=rgba,colorchannelmixer=aa=0.6[m];[0][m]overlay=W-w-30:30"
    _run("ffmpeg", "-y", "-i", clean, "-i", _logo(folder), "-filter_complex", graph, marked)


def pillow(clean: Path, marked: Path, _folder: Path) -> None:
    with Image.open(clean) as opened:
        image = opened.convert("RGBA")
    layer = Image.new("RGBA", image.size)
    ImageDraw.Draw(layer).text(
        (480, 300), "ACME 2026", font=ImageFont.truetype(FONT, 110), fill=(255, 255, 255, 100), anchor="mm"
    )
    Image.alpha_composite(image, layer).convert("RGB").save(marked)


def libreoffice(clean: Path, marked: Path, folder: Path) -> None:
    """A drawing with the photograph and a half-transparent word over it, exported as a picture."""
    picture = base64.b64encode(clean.read_bytes()).decode()
    drawing = folder / "drawing.fodg"
    drawing.write_text(_DRAWING.replace("PICTURE", picture))
    _run(
        "soffice",
        f"-env:UserInstallation=file://{folder}/profile",
        "--headless",
        "--convert-to",
        "png",
        "--outdir",
        folder,
        drawing,
    )
    exported, whole = cv2.imread(str(folder / "drawing.png")), cv2.imread(str(clean))
    assert exported is not None
    assert whole is not None
    # It exports an upright A4 page at 96 dots an inch, which cuts the photograph off on the right.
    shown = exported[: whole.shape[0], : whole.shape[1]]
    whole[: shown.shape[0], : shown.shape[1]] = shown
    cv2.imwrite(str(marked), whole)


_DRAWING = """<?xml version="1.0" encoding="UTF-8"?>
<office:document xmlns:office="urn:oasis:names:tc:opendocument:xmlns:office:1.0"
 xmlns:style="urn:oasis:names:tc:opendocument:xmlns:style:1.0"
 xmlns:text="urn:oasis:names:tc:opendocument:xmlns:text:1.0"
 xmlns:draw="urn:oasis:names:tc:opendocument:xmlns:drawing:1.0" xmlns:xlink="http://www.w3.org/1999/xlink"
 xmlns:fo="urn:oasis:names:tc:opendocument:xmlns:xsl-fo-compatible:1.0"
 xmlns:svg="urn:oasis:names:tc:opendocument:xmlns:svg-compatible:1.0"
 xmlns:loext="urn:org:documentfoundation:names:experimental:office:xmlns:loext:1.0"
 office:version="1.3" office:mimetype="application/vnd.oasis.opendocument.graphics">
<office:automatic-styles>
<style:page-layout style:name="P"><style:page-layout-properties fo:page-width="25.4cm" fo:page-height="15.875cm"
 fo:margin-top="0cm" fo:margin-bottom="0cm" fo:margin-left="0cm" fo:margin-right="0cm"/></style:page-layout>
<style:style style:name="g" style:family="graphic"><style:graphic-properties
 draw:stroke="none" draw:fill="none"/></style:style>
<style:style style:name="t" style:family="text"><style:text-properties fo:font-size="80pt" fo:color="#ffffff"
 loext:opacity="45%" fo:font-weight="bold"/></style:style>
</office:automatic-styles>
<office:master-styles><style:master-page style:name="M" style:page-layout-name="P"/></office:master-styles>
<office:body><office:drawing><draw:page draw:name="1" draw:master-page-name="M">
<draw:frame draw:style-name="g" svg:x="0cm" svg:y="0cm" svg:width="25.4cm" svg:height="15.875cm"><draw:image>
<office:binary-data>PICTURE</office:binary-data></draw:image></draw:frame>
<draw:frame draw:style-name="g" svg:x="3cm" svg:y="6cm" svg:width="20cm" svg:height="4cm"><draw:text-box>
<text:p><text:span text:style-name="t">DRAFT 2026</text:span></text:p></draw:text-box></draw:frame>
</draw:page></office:drawing></office:body></office:document>
"""

PROGRAMS: Mapping[str, tuple[str, Put]] = {
    "imagemagick dissolve": ("composite", dissolve),
    "imagemagick watermark": ("composite", watermark),
    "imagemagick annotate": ("convert-im6", annotate),
    "ffmpeg drawtext": ("ffmpeg", drawtext),
    "ffmpeg overlay": ("ffmpeg", overlay),
    "libreoffice": ("soffice", libreoffice),
    "pillow, DejaVu": ("python3", pillow),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--photos", type=Path, default=Path("../shared/photos"))
    args = parser.parse_args()
    photos = photographs(args.photos, quick=False)[1::4][:PHOTOS]
    print(f"{'':24}recall  precision  marked  ours (dB where the mark is)")
    for name, (program, put) in PROGRAMS.items():
        if shutil.which(program) is None:
            print(f"{name:24}{program} is not installed")
            continue
        rows = [_measured(photo, put) for photo in photos]
        print(f"{name:24}" + "  ".join(f"{value:7.2f}" for value in np.mean(rows, 0)), flush=True)


def _measured(photo: Picture, put: Put) -> tuple[float, ...]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        clean, marked = folder / "clean.png", folder / "marked.png"
        Image.fromarray(photo).save(clean)
        put(clean, marked, folder)
        with Image.open(marked) as opened:
            result = np.array(opened.convert("RGB"))
    # The programs also rescale and convert by a level or two; a mark changes more.
    there = cv2.morphologyEx(
        (np.abs(result.astype(int) - photo).max(2) > 8).astype(np.uint8), cv2.MORPH_OPEN, np.ones((2, 2), np.uint8)
    )
    truth = grown(there.astype(np.bool_), 1)
    saved = filed(result)
    detection = detect(saved)
    seen, ours = detection.mask_tight, solve(saved, detection).picture
    recall = (seen & truth).sum() / max(1, truth.sum())
    precision = (seen & grown(truth, 1)).sum() / seen.sum() if seen.any() else 1.0
    return recall, precision, psnr(saved, photo, truth), psnr(ours, photo, truth)


if __name__ == "__main__":
    main()
