"""The options of ``headrace detect`` and ``headrace remove``, and what they say of the mark."""

import re
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from headrace.removal.ai_labels import MIN_REASON_LETTERS
from headrace.removal.errors import TargetUnusable
from headrace.removal.order import END_SECONDS, MAX_SIDE, Codec, FrameHint, Hint, Order, Rectangle

Source = Annotated[
    Path, typer.Argument(help="A picture (JPEG, PNG, WebP, TIFF …), a clip, a PDF or slides.", metavar="FILE")
]
Sources = Annotated[
    list[Path],
    typer.Argument(
        help="Pictures (JPEG, PNG, WebP, TIFF …), clips, PDFs, slides, or folders of them.", metavar="FILE..."
    ),
]
Force = Annotated[bool, typer.Option("--force", help="Replace an existing file.")]
SaveMask = Annotated[Path | None, typer.Option(help="Write the mark's pixels to this PNG file.")]
LeastScore = Annotated[float, typer.Option(help="Leave a mark alone that is less certain than this.", min=0, max=1)]
Threads = Annotated[int, typer.Option(help="How many threads may work on it.", min=1)]


class Mode(StrEnum):
    AUTO = "auto"
    MANUAL = "manual"


class Quality(StrEnum):
    STANDARD = "standard"
    HIGH = "high"


Only = Annotated[
    list[int] | None, typer.Option(help="Take off only this candidate, as detect numbers them. Repeatable.", min=1)
]
ModeOption = Annotated[
    Mode, typer.Option(help="auto removes certain marks; manual, for documents, only the marks named by --only.")
]
Pages = Annotated[
    str | None, typer.Option(help="Of documents, change only these pages: 2-9, or 1,4-6.", metavar="RANGES")
]
PasswordFile = Annotated[
    Path | None, typer.Option(help="The first line of this file is the password of an encrypted document.")
]
Overlay = Annotated[
    Path | None,
    typer.Option(help="Of a PDF or a clip: write the page or frame that shows most to this PNG file, with boxes."),
]
BreakSignature = Annotated[
    bool, typer.Option("--break-signature", help="Change a signed document; its signature does not hold afterwards.")
]

QualityOption = Annotated[
    Quality, typer.Option(help="high works on pictures twice, and packs clips better; it takes longer.")
]
CodecOption = Annotated[
    Codec, typer.Option(help="Of clips: auto is as the clip, where a browser plays that and it can be written.")
]
Preview = Annotated[
    bool,
    typer.Option(
        "--preview", help="Write a picture of before and after beside each result, as NAME.preview.png; of slides none."
    ),
]
_RANGE = re.compile(r"(\d{1,6})(?:-(\d{1,6}))?")
_LAST_FRAME = 2**31
_WHEN = re.compile(
    r"(?P<first>\d{1,9})f-(?:(?P<last>\d{1,9})f)?|(?P<begins>\d{1,6}(?:\.\d+)?)-(?P<ends>\d{1,6}(?:\.\d+)?)?"
)


def hints(boxes: list[str] | None, keep: list[str] | None) -> tuple[FrameHint | Hint, ...]:
    """Where the mark is, and what must stay."""
    kept = [_rectangle(text, "--keep") for text in keep or ()]
    return (*(_placed(text) for text in boxes or ()), *([Hint(keep=kept)] if kept else ()))


def has_time(order: Order) -> bool:
    """Whether any of the boxes is for a part of the time alone."""
    return any(hint.seconds is not None or (isinstance(hint, FrameHint) and hint.frames) for hint in order.hints)


def _placed(text: str) -> FrameHint:
    """A box with its time: ``3-8.5`` are seconds, ``75f-200f`` frames, and an end that is left out is the clip's."""
    box, _, when = text.partition("@")
    rectangle = _rectangle(box, "--box")
    if not when:
        return FrameHint(boxes=[rectangle])
    match = _WHEN.fullmatch(when)
    if match is None:
        raise typer.BadParameter(
            f"{when} is no time: write 3-8.5 for seconds, or 75f-200f for frames", param_hint="--box"
        )
    if match["first"] is not None:
        return FrameHint(boxes=[rectangle], frames=(int(match["first"]), int(match["last"] or _LAST_FRAME)))
    begins, ends = float(match["begins"]), float(match["ends"]) if match["ends"] else END_SECONDS
    always = begins <= 0 and ends >= END_SECONDS
    return FrameHint(boxes=[rectangle], seconds=None if always else (begins, ends))


def _rectangle(text: str, option: str) -> Rectangle:
    try:
        left, top, width, height = (int(part) for part in text.split(","))
    except ValueError:
        left = top = width = height = -1
    if not (0 <= left <= MAX_SIDE and 0 <= top <= MAX_SIDE and 0 < width <= MAX_SIDE and 0 < height <= MAX_SIDE):
        raise typer.BadParameter(f"{text} is not LEFT,TOP,WIDTH,HEIGHT in pixels", param_hint=option)
    return left, top, width, height


def named(target: Path | None) -> str | None:
    return None if target is None else str(no_stream(target))


def no_stream(target: Path) -> Path:
    if str(target) == "-":
        raise TargetUnusable("Results go to files, not to standard output: name one.")
    return target


def read_password(file: Path | None) -> str | None:
    if file is None:
        return None
    try:
        return file.read_text().partition("\n")[0].rstrip("\r")
    except (OSError, UnicodeDecodeError) as exc:
        raise typer.BadParameter(f"{file} cannot be read: {exc}", param_hint="--password-file") from exc


def label_reason(text: str | None) -> str | None:
    if text is not None and len(text.strip()) < MIN_REASON_LETTERS:
        raise typer.BadParameter(
            f"say in {MIN_REASON_LETTERS} letters or more why this is lawful", param_hint="--ai-label-reason"
        )
    return text


def page_ranges(text: str | None) -> tuple[tuple[int, int], ...]:
    if text is None:
        return ()
    matches = [_RANGE.fullmatch(part.strip()) for part in text.split(",")]
    ranges = [(int(each[1]), int(each[2] or each[1])) for each in matches if each is not None]
    if len(ranges) < len(matches) or any(first < 1 or last < first for first, last in ranges):
        raise typer.BadParameter(f"{text} is not pages such as 2-9 or 1,4-6", param_hint="--pages")
    return tuple(ranges)
