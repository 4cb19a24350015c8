"""One animated picture (GIF, WebP, PNG) without a service: its stages, one after the other, in a folder."""

import shutil
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from PIL import Image

from headrace.removal import animation
from headrace.removal.comparison import Triptych
from headrace.removal.errors import HintUnusable, PictureUnreadable, TargetUnusable
from headrace.removal.formats import BROKEN
from headrace.removal.pipeline import animated_stages, messages
from headrace.removal.pipeline.model import ENDINGS, FailureCode, Hint, Names, RemovalOrder, Stage, StageOrder
from headrace.removal.pipeline.picture_stages import mark_of, refusal_of_check
from headrace.removal.places import KINDS
from headrace.removal.report import POOR, MarkedRegion, Order, Removal, Report

Progress = Callable[[int], object]

# How far the work is, in percent, when a stage begins.
_READ, _SEEN, _SOLVED, _WRITTEN = 2, 30, 85, 100
# What the service says is meant for those who order there.
_WORDS = {
    FailureCode.NO_MARK: "No mark was seen.",
    FailureCode.NEEDS_REVIEW: "Needs review: there may be a mark, but somebody must say so. Say which region is the "
    "mark (--only, as `headrace detect` numbers them) or where it is (--box).",
    FailureCode.MARK_REMAINS: "The mark could not be taken off without leaving a trace. Draw it (--mask).",
}


def process(order: Order, progress: Progress, folder: Path) -> Report:
    """As ``pictures.process`` does it with single pictures; files of the work lie in ``folder``."""
    began = time.monotonic()
    if order.strength != 1:
        raise HintUnusable("Of animations all of the change is made: leave out --strength.")
    try:
        film = animation.read(order.source)
    except animation.TooLong as exc:
        raise PictureUnreadable(str(exc)) from exc
    except (Image.DecompressionBombError, *BROKEN) as exc:
        raise PictureUnreadable(f"{order.source} is not an animation that can be read: {exc}") from exc
    kind = film.kind.lower()
    if order.result is not None and KINDS.get(Path(order.result).suffix.lower(), film.kind) != film.kind:
        raise TargetUnusable(f"An animated {film.kind} stays one: let --to end in .{ENDINGS[kind]}.")
    stage_order = _stage_order(order, film, kind, folder)
    (folder / Names.SOURCE).symlink_to(Path(order.source).resolve())
    if order.drawn is not None:
        (folder / Names.MASK).symlink_to(Path(order.drawn).resolve())
    animated_stages.prepare(stage_order, lambda _: None)
    progress(_READ)
    seen = animated_stages.detect(stage_order, _part(progress, _READ, _SEEN))
    stage_order = replace(stage_order, earlier=seen.facts)
    if order.mask is not None and seen.refused is None:
        _write_mask(stage_order, order.mask)
    removal = None
    if order.result is not None:
        removal = _removed(order, stage_order, seen.refused, progress, film)
    progress(_WRITTEN)
    width, height = film.size
    return Report(
        width=width,
        height=height,
        score=seen.facts["score"],
        regions=tuple(_region(each) for each in seen.candidates if each["score"] >= order.least_score),
        covered=seen.facts["covered"],
        seconds=round(time.monotonic() - began, 3),
        removal=removal,
    )


def _region(candidate: dict[str, Any]) -> MarkedRegion:
    left, top, width, height = candidate["box"]
    return MarkedRegion(left, top, width, height, candidate["score"], width * height)


def _removed(
    order: Order, stage_order: StageOrder, refused: FailureCode | None, progress: Progress, film: animation.Animation
) -> Removal:
    facts: dict[str, Any] = {}
    remains = False
    if refused is None:
        solved = animated_stages.inpaint(stage_order, _part(progress, _SEEN, _SOLVED))
        facts, refused = solved.facts, solved.refused
    if refused is None:
        packed = animated_stages.package(stage_order, _part(progress, _SOLVED, _WRITTEN))
        refused = packed.refused
        strictly = stage_order.order.model_copy(update={"accept_poor": False})
        remains = refused is None and refusal_of_check(packed.facts, strictly) is not None
    if refused is not None:
        reason = _WORDS.get(refused, messages.MESSAGES[refused])
        review = refused is FailureCode.NEEDS_REVIEW
        return Removal(False, reason, 0.0, False, 0, 0, (), needs_review=review)
    assert order.result is not None
    shutil.copyfile(stage_order.path(stage_order.result), order.result)
    if order.compare is not None:
        after = animation.read(stage_order.path(stage_order.result)).frames[0]
        Triptych.of(film.frames[0], mark_of(stage_order).tight).save(order.compare, after)
    confidence = facts["confidence"]
    return Removal(True, None, confidence, confidence < POOR or remains, facts["computed"], facts["invented"], ())


def _stage_order(order: Order, film: animation.Animation, kind: str, folder: Path) -> StageOrder:
    wanted = RemovalOrder(
        asset_id="",
        sha256="",
        format=kind,
        units=1,
        output_format=kind,
        hints=[Hint(boxes=list(order.boxes), keep=list(order.keep))],
        mask_asset_id=None if order.drawn is None else "drawn",
        candidates=list(order.only),
        accept_poor=True,  # whoever started it is told of it, and decides
        frames=len(film.frames),
    )
    return StageOrder("IMAGE", Stage.PREPROCESSING, str(folder), wanted, threads=order.threads)


def _write_mask(stage_order: StageOrder, target: str) -> None:
    Image.fromarray(mark_of(stage_order).tight).convert("L").save(target, "PNG")


def _part(progress: Progress, start: int, end: int) -> Progress:
    return lambda percent: progress(start + (end - start) * percent // 100)
