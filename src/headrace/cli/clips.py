"""``headrace detect`` and ``headrace remove`` for clips."""

from typing import Annotated

import typer

from headrace.cli.output import number_of, out, print_json, print_table, say
from headrace.removal import confined_videos
from headrace.removal.candidates import Mode, Outcome
from headrace.removal.report import Rectangle
from headrace.removal.video.model import Candidate, Codec, Kind, Placed, Quality, VideoOrder, VideoReport

QualityOption = Annotated[Quality, typer.Option(help="Of clips: high takes longer to pack the same picture better.")]
CodecOption = Annotated[
    Codec, typer.Option(help="Of clips: auto is as the clip, where a browser plays that and it can be written.")
]
Preview = Annotated[
    bool,
    typer.Option(
        "--preview", help="Write a picture of before and after beside each result, as NAME.preview.png; of slides none."
    ),
]
_MOST_SPANS = 4


def order(
    mode: Mode,
    only: list[int] | None,
    boxes: tuple[Rectangle, ...],
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
        boxes=tuple(Placed(box) for box in boxes),
        keep=keep,
        drawn=drawn,
        quality=quality,
        codec=codec,
        threads=threads,
        force=force,
    )


def detect(asked: VideoOrder, *, json: bool) -> None:
    """Print what may be a mark in a clip; exits with 1 if nothing is."""
    from headrace.cli.batches import watched

    with watched(f"looking at {asked.source}") as on_progress:
        report = confined_videos.carry_out(asked, on_progress=on_progress)
    if json:
        print_json(report.as_json())
    elif report.candidates:
        columns = ("#", "score", "what", "where", "when", "strength", "why")
        print_table(columns, [_row(each) for each in report.candidates])
    else:
        out.print(f"no mark found in {number_of(report.clip.frames, 'frame')}", markup=False)
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
    told = ", ".join(f"{begins:.1f}-{ends:.1f} s" for begins, ends in each.spans[:_MOST_SPANS])
    return told + (", …" if len(each.spans) > _MOST_SPANS else "")
