"""``headrace detect`` and ``headrace remove`` for clips."""

import re
from typing import Annotated

import typer

from headrace.cli.bars import watched
from headrace.cli.output import number_of, out, print_json, print_table, say
from headrace.removal.candidates import Mode, Outcome
from headrace.removal.report import Rectangle
from headrace.removal.video import confined as confined_videos
from headrace.removal.video.model import Candidate, Codec, Kind, Placed, Quality, VideoOrder, VideoReport

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
_MAX_SPANS = 4
_LAST_FRAME = 2**31
_WHEN = re.compile(
    r"(?P<first>\d{1,9})f-(?:(?P<last>\d{1,9})f)?|(?P<begins>\d{1,6}(?:\.\d+)?)-(?P<ends>\d{1,6}(?:\.\d+)?)?"
)


def order(
    mode: Mode,
    only: list[int] | None,
    boxes: tuple[Placed, ...],
    keep: tuple[Rectangle, ...],
    drawn: str | None,
    *,
    quality: Quality,
    codec: Codec,
    threads: int,
    force: bool,
) -> VideoOrder:
    """What the options ask for, without the files."""
    return VideoOrder(
        "",
        mode=mode,
        only=tuple(only or ()),
        boxes=boxes,
        keep=keep,
        drawn=drawn,
        quality=quality,
        codec=codec,
        threads=threads,
        force=force,
    )


def placed(box: Rectangle, when: str | None) -> Placed:
    """A box with its time: ``3-8.5`` are seconds, ``75f-200f`` frames, and an end that is left out is the clip's."""
    if when is None:
        return Placed(box)
    match = _WHEN.fullmatch(when)
    if match is None:
        raise ValueError(when)
    if match["first"] is not None:
        return Placed(box, frames=(int(match["first"]), int(match["last"] or _LAST_FRAME)))
    return Placed(box, float(match["begins"]), float(match["ends"]) if match["ends"] else None)


def detect(order: VideoOrder, *, json: bool) -> None:
    """Print the possible marks in a clip; exits with 1 if there are none."""
    with watched(f"looking at {order.source}") as on_progress:
        report = confined_videos.carry_out(order, on_progress=on_progress)
    if json:
        print_json(report.as_json())
    elif report.candidates:
        columns = ("#", "score", "what", "where", "when", "strength", "why")
        print_table(columns, [_row(each) for each in report.candidates])
    else:
        out.print(f"no mark found in {number_of(report.clip.frames, 'frame')}")
    if not report.candidates:
        raise typer.Exit(1)
    certain = [each.id for each in report.candidates if each.certain]
    if len(certain) < len(report.candidates) and not json:
        sure = f"remove takes off {', '.join(map(str, certain))}" if certain else "remove takes off none by itself"
        say(f"{sure}; name what else is a mark with --only")


def summary(report: VideoReport) -> str:
    if report.outcome is not Outcome.REMOVED or report.check is None:
        return report.reason or "nothing was removed"
    return (
        f"{number_of(len(report.removed), 'mark')} taken off {number_of(report.clip.frames, 'frame')} in "
        f"{report.seconds:.1f} s, {report.check.residue_after:.0%} left"
    )


def _row(each: Candidate) -> tuple[object, ...]:
    left, top, width, height = each.box
    when = "always" if each.kind is Kind.FIXED else _spans(each)
    place = f"{width} x {height} at {left}, {top}"
    return each.id, f"{each.score:.2f}", each.kind, place, when, f"{each.opacity:.0%}", "; ".join(each.reasons)


def _spans(each: Candidate) -> str:
    parts = ", ".join(f"{begins:.1f}-{ends:.1f} s" for begins, ends in each.spans[:_MAX_SPANS])
    return parts + (", …" if len(each.spans) > _MAX_SPANS else "")
