"""``headrace detect`` and ``headrace remove``: marks on pictures, on this machine, without a server."""

from pathlib import Path
from typing import Annotated, Any

import typer

from headrace.cli.output import Json, out, print_json, progress, say
from headrace.errors import Invalid
from headrace.removal import pictures

Source = Annotated[Path, typer.Argument(help="The picture: JPEG, PNG, WebP, TIFF …", metavar="PICTURE")]
Threads = Annotated[int, typer.Option(help="How many threads may work on it.", min=1)]


def detect(
    picture: Source,
    mask: Annotated[Path | None, typer.Option(help="Write the mark's pixels to this PNG file.")] = None,
    threads: Threads = 2,
    json: Json = False,
) -> None:
    """Look for a watermark in a picture; exits with 1 if there is none."""
    order = pictures.Order(_readable(picture), mask=None if mask is None else str(mask), threads=threads)
    with progress(f"looking at {picture}"):
        report = pictures.carry_out(order)
    if json:
        print_json(report)
    else:
        out.print(_told(report), markup=False)
    if not report["regions"]:
        raise typer.Exit(1)


def remove(
    picture: Source,
    to: Annotated[
        Path | None, typer.Option("--to", "-o", help="Where the result goes; by default beside it, as NAME.clean.EXT.")
    ] = None,
    least_score: Annotated[
        float, typer.Option(help="Leave a mark alone that is less certain than this.", min=0, max=1)
    ] = 0.5,
    threads: Threads = 2,
    json: Json = False,
) -> None:
    """Take the watermark off a picture that is yours; exits with 1 and writes nothing if that cannot be done."""
    target = to or picture.with_name(f"{picture.stem}.clean{picture.suffix}")
    order = pictures.Order(_readable(picture), result=str(target), threads=threads, least_score=least_score)
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
    if not report["removed"]:
        raise typer.Exit(1)


def _readable(picture: Path) -> str:
    if not picture.is_file():
        raise Invalid(f"There is no file {picture}.")
    return str(picture)


def _told(report: dict[str, Any]) -> str:
    if not report["regions"]:
        return f"no mark seen (score {report['score']:.2f})"
    first = report["regions"][0]
    count = len(report["regions"])
    place = f"{first['width']} x {first['height']} at {first['left']}, {first['top']}"
    return f"a mark in {count} part{'s' * (count > 1)}, score {report['score']:.2f}, the surest {place}"
