"""``headrace detect`` and ``headrace remove``: marks on pictures, clips and documents, on this machine, no server."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from headrace.cli import batches, clips, documents
from headrace.cli.output import POOR_RESULT, Json, err, out, print_json, progress, say
from headrace.cli.signals import ending_in_order
from headrace.removal.candidates import DocumentOrder, Mode
from headrace.removal.errors import TargetUnusable
from headrace.removal.images import confined
from headrace.removal.report import MarkedRegion, Order, Rectangle, Removal, Report
from headrace.removal.video.model import Codec, Placed, Quality, VideoOrder
from headrace.removal.video.recognising import is_clip

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


def detect(
    picture: Source,
    mask: SaveMask = None,
    least_score: LeastScore = 0.5,
    force: Force = False,
    threads: Threads = 2,
    overlay: documents.Overlay = None,
    password_file: documents.PasswordFile = None,
    json: Json = False,
) -> None:
    """Detect a watermark in a picture, a clip, a PDF or slides; exits with 1 if none is certain."""
    if is_clip(picture):
        drawn = _named(overlay)
        clips.detect(VideoOrder(str(picture), overlay=drawn, threads=threads, force=force), json=json)
        return
    if documents.is_document(picture):
        if mask is not None:
            raise typer.BadParameter("a mark in a document is an object, not pixels: leave it out", param_hint="--mask")
        password = documents.read_password(password_file)
        documents.detect(
            DocumentOrder(str(picture), password=password, overlay=_named(overlay), force=force), json=json
        )
        return
    order = Order(str(picture), mask=_named(mask), threads=threads, least_score=least_score, force=force)
    report = _carry_out(order, f"looking at {picture}")
    if json:
        print_json(report.as_json())
    else:
        out.print(_summary(report))
        for number, region in enumerate(report.regions, 1):
            doubt = "" if region.certain else ", removed only if named with --only"
            out.print(f"{number}: {_place(region)}, score {region.score:.2f}{doubt}")
    if not any(region.certain for region in report.regions):
        raise typer.Exit(1)


def remove(
    files: Sources,
    to: Annotated[
        Path | None,
        typer.Option(
            "--to", "-o", help="Where the result goes, a file or a folder; by default beside it, as NAME.clean.EXT."
        ),
    ] = None,
    least_score: LeastScore = 0.5,
    box: Annotated[
        list[str] | None,
        typer.Option(
            help="The mark is in this box alone: LEFT,TOP,WIDTH,HEIGHT in pixels. Of a clip with @ and when: "
            "20,20,200,60@3-8.5 is from second 3 to 8.5, @75f-200f are frames. Repeatable."
        ),
    ] = None,
    keep: Annotated[list[str] | None, typer.Option(help="Change nothing in this box. Repeatable.")] = None,
    mask: Annotated[
        Path | None, typer.Option(help="A picture of the same size that is white where the mark is.")
    ] = None,
    only: documents.Only = None,
    mode: documents.ModeOption = Mode.AUTO,
    same_mark: Annotated[
        bool, typer.Option("--same-mark", help="All pictures carry the same mark in the same place: learn it from all.")
    ] = False,
    quality: clips.QualityOption = Quality.STANDARD,
    codec: clips.CodecOption = Codec.AUTO,
    preview: clips.Preview = False,
    pages: documents.Pages = None,
    password_file: documents.PasswordFile = None,
    break_signature: documents.BreakSignature = False,
    strength: Annotated[
        float, typer.Option(help="How much of the change is made: 0.9 takes off less, 1.1 more.", min=0, max=2)
    ] = 1.0,
    save_mask: SaveMask = None,
    compare: Annotated[
        Path | None, typer.Option(help="Write before, mask and after, side by side, to this PNG file.")
    ] = None,
    accept_poor: Annotated[
        bool, typer.Option("--accept-poor", help="Accept a poor result: report it, but exit with 0.")
    ] = False,
    force: Force = False,
    threads: Threads = 2,
    json: Json = False,
) -> None:
    """Take the watermark off files that are yours; exits with 1 if one is left as it is, 8 if a result is poor."""
    boxes = tuple(_placed(text) for text in box or ())
    hints = Order(
        "",
        threads=threads,
        least_score=least_score,
        force=force,
        boxes=tuple(each.box for each in boxes),
        keep=_rectangles(keep, "--keep"),
        drawn=None if mask is None else str(mask),
        strength=strength,
        thorough=quality is Quality.HIGH,
    )
    if mode is Mode.MANUAL and not (only or box or mask):
        raise typer.BadParameter("mode hand needs a marked region: add --only, --box or --mask", param_hint="--mode")
    place = None if to is None else _no_stream(to)
    if not all(each.always for each in boxes) and not all(is_clip(each) for each in files):
        raise typer.BadParameter("only clips have a time: leave out what follows @", param_hint="--box")
    picture = files[0]
    if len(files) > 1 or picture.is_dir() or documents.is_document(picture) or is_clip(picture):
        _refuse_for_many({"--save-mask": save_mask, "--compare": compare})
        wanted = batches.Wanted(
            hints,
            documents.order(mode, only, pages, password_file, break_signature=break_signature, force=force),
            clips.order(
                mode, only, boxes, hints.keep, hints.drawn, quality=quality, codec=codec, threads=threads,
                force=force,
            ),
            preview=preview,
            same_mark=same_mark,
            accept_poor=accept_poor,
        )  # fmt: skip
        batches.remove(batches.items_of(files, place), wanted, json=json)
        return
    # A picture without a name (a folder such as ..) is refused with its own error.
    target = batches.target_of(picture, place)
    if preview and compare is None:
        compare = target.with_name(f"{target.stem}.preview.png")
    order = replace(
        hints,
        source=str(picture),
        result=str(target),
        mask=_named(save_mask),
        only=tuple(only or ()),
        compare=_named(compare),
    )
    report = _carry_out(order, f"working on {picture}")
    removal = report.removal
    assert removal is not None
    if json:
        print_json(report.as_json() | {"to": str(target) if removal.removed else None})
    elif removal.removed:
        out.print(target)
        say(
            f"{_summary(report)}; {removal.computed:,} pixels computed, {removal.invented:,} invented, "
            f"confidence {removal.confidence:.2f}"
        )
    else:
        say(removal.reason or "nothing was removed")
    for warning in removal.warnings:
        say(f"not as in the original: {warning}")
    _end(removal, accept_poor=accept_poor)


def _end(removal: Removal, *, accept_poor: bool) -> None:
    if not removal.removed:
        raise typer.Exit(1)
    if removal.poor:
        say(batches.POOR)
        if not accept_poor:
            raise typer.Exit(POOR_RESULT)


def _carry_out(order: Order, doing: str) -> Report:
    """With a progress line. When this process ends, for any reason, the child ends with it."""
    with ending_in_order(), progress(doing) as report:
        # Only where the line is written over: a log wants one line for each picture.
        on_progress = (lambda percent: report(f"{doing}: {percent} %")) if err.is_terminal else None
        return confined.carry_out(order, on_progress=on_progress)


def _refuse_for_many(targets: Mapping[str, Path | None]) -> None:
    for option, target in targets.items():
        if target is not None:
            raise typer.BadParameter("it is one file: give one picture at a time", param_hint=option)


def _named(target: Path | None) -> str | None:
    return None if target is None else str(_no_stream(target))


def _rectangles(texts: list[str] | None, option: str) -> tuple[Rectangle, ...]:
    return tuple(_rectangle(text, option) for text in texts or ())


def _placed(text: str) -> Placed:
    box, _, when = text.partition("@")
    try:
        return clips.placed(_rectangle(box, "--box"), when or None)
    except ValueError:
        raise typer.BadParameter(
            f"{when} is no time: write 3-8.5 for seconds, or 75f-200f for frames", param_hint="--box"
        ) from None


def _rectangle(text: str, option: str) -> Rectangle:
    try:
        left, top, width, height = (int(part) for part in text.split(","))
    except ValueError:
        left = top = width = height = -1
    if left < 0 or top < 0 or width <= 0 or height <= 0:
        raise typer.BadParameter(f"{text} is not LEFT,TOP,WIDTH,HEIGHT in pixels", param_hint=option)
    return left, top, width, height


def _no_stream(target: Path) -> Path:
    if str(target) == "-":
        raise TargetUnusable("Results go to files, not to standard output: name one.")
    return target


def _summary(report: Report) -> str:
    regions = [region for region in report.regions if region.certain]
    if not regions:
        return f"no certain mark (score {report.score:.2f})"
    first, count = regions[0], len(regions)
    return f"a mark in {count} part{'s' * (count > 1)}, score {report.score:.2f}, the surest {_place(first)}"


def _place(region: MarkedRegion) -> str:
    return f"{region.width} x {region.height} at {region.left}, {region.top}"
