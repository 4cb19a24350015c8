"""``headrace detect`` and ``headrace remove``: marks on pictures, on this machine, without a server."""

from pathlib import Path
from typing import Annotated, Any

import typer

from headrace.cli.output import Json, out, print_json, progress, say
from headrace.removal import pictures
from headrace.removal.errors import TargetUnusable

Source = Annotated[Path, typer.Argument(help="The picture: JPEG, PNG, WebP, TIFF …", metavar="PICTURE")]
Force = Annotated[bool, typer.Option("--force", help="Replace a file that is there already.")]
LeastScore = Annotated[float, typer.Option(help="Leave a mark alone that is less certain than this.", min=0, max=1)]
Threads = Annotated[int, typer.Option(help="How many threads may work on it.", min=1)]


def detect(
    picture: Source,
    mask: Annotated[Path | None, typer.Option(help="Write the mark's pixels to this PNG file.")] = None,
    least_score: LeastScore = 0.5,
    force: Force = False,
    threads: Threads = 2,
    json: Json = False,
) -> None:
    """Look for a watermark in a picture; exits with 1 if there is none."""
    target = _named(mask)
    order = pictures.Order(str(picture), mask=target, threads=threads, least_score=least_score, force=force)
    with progress(f"looking at {picture}"):
        report = pictures.carry_out(order)
    if json:
        print_json(report)
    else:
        out.print(_told(report), markup=False)
        for number, region in enumerate(report["regions"], 1):
            place = f"{region['width']} x {region['height']} at {region['left']}, {region['top']}"
            out.print(f"{number}: {place}, score {region['score']:.2f}", markup=False)
    if not report["regions"]:
        raise typer.Exit(1)


def remove(
    picture: Source,
    to: Annotated[
        Path | None, typer.Option("--to", "-o", help="Where the result goes; by default beside it, as NAME.clean.EXT.")
    ] = None,
    least_score: LeastScore = 0.5,
    box: Annotated[
        list[str] | None,
        typer.Option(help="The mark is in this box alone: LEFT,TOP,WIDTH,HEIGHT in pixels. Repeatable."),
    ] = None,
    keep: Annotated[list[str] | None, typer.Option(help="Change nothing in this box. Repeatable.")] = None,
    mask: Annotated[
        Path | None, typer.Option(help="A picture of the same size that is white where the mark is.")
    ] = None,
    only: Annotated[
        list[int] | None, typer.Option(help="Take off only this region, as numbered by detect. Repeatable.", min=1)
    ] = None,
    strength: Annotated[
        float, typer.Option(help="How much of the change is made: 0.9 takes off less, 1.1 more.", min=0, max=2)
    ] = 1.0,
    save_mask: Annotated[Path | None, typer.Option(help="Write the mark's pixels to this PNG file.")] = None,
    compare: Annotated[
        Path | None, typer.Option(help="Write before, mask and after, side by side, to this PNG file.")
    ] = None,
    force: Force = False,
    threads: Threads = 2,
    json: Json = False,
) -> None:
    """Take the watermark off a picture that is yours; exits with 1 and writes nothing if that cannot be done."""
    # A picture without a name (a folder such as ..) is refused as what it is.
    target = _no_stream(to) if to else picture.parent / f"{picture.stem}.clean{picture.suffix}"
    order = pictures.Order(
        str(picture),
        result=str(target),
        mask=_named(save_mask),
        threads=threads,
        least_score=least_score,
        force=force,
        boxes=_boxes(box, "--box"),
        keep=_boxes(keep, "--keep"),
        known=None if mask is None else str(mask),
        only=tuple(only or ()),
        strength=strength,
        compare=_named(compare),
    )
    with progress(f"working on {picture}"):
        report = pictures.carry_out(order)
    if json:
        print_json(report | {"to": str(target) if report["removed"] else None})
    elif report["removed"]:
        out.print(target, markup=False)
        say(
            f"{_told(report)}; {report['computed']:,} pixels computed, {report['invented']:,} invented, "
            f"confidence {report['confidence']:.2f}"
        )
    else:
        say(report["reason"])
    for note in report["notes"]:
        say(f"not as in the original: {note}")
    if report["poor"]:
        say("a poor result: look at it before you use it")
    if not report["removed"]:
        raise typer.Exit(1)


def _named(target: Path | None) -> str | None:
    return None if target is None else str(_no_stream(target))


def _boxes(given: list[str] | None, option: str) -> tuple[tuple[int, int, int, int], ...]:
    """Boxes out of LEFT,TOP,WIDTH,HEIGHT."""
    boxes = []
    for text in given or ():
        try:
            left, top, width, height = (int(part) for part in text.split(","))
        except ValueError:
            left = top = width = height = -1
        if left < 0 or top < 0 or width <= 0 or height <= 0:
            raise typer.BadParameter(f"{text} is not LEFT,TOP,WIDTH,HEIGHT in pixels", param_hint=option)
        boxes.append((left, top, width, height))
    return tuple(boxes)


def _no_stream(target: Path) -> Path:
    if str(target) == "-":
        raise TargetUnusable("Results go to files, not to standard output: name one.")
    return target


def _told(report: dict[str, Any]) -> str:
    if not report["regions"]:
        return f"no mark seen (score {report['score']:.2f})"
    first = report["regions"][0]
    count = len(report["regions"])
    place = f"{first['width']} x {first['height']} at {first['left']}, {first['top']}"
    return f"a mark in {count} part{'s' * (count > 1)}, score {report['score']:.2f}, the surest {place}"
