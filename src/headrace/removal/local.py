"""One picture without a service: the same four stages that the service runs, one after the other, in a folder.

A file from anywhere may be made to harm: call ``process`` in a child process, as ``confined.carry_out`` does.
"""

import contextlib
import ctypes
import errno
import shutil
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from PIL import Image, UnidentifiedImageError

from headrace.assets.heif.items import GENERAL_BRANDS, HEVC_BRANDS
from headrace.errors import HeadraceError
from headrace.removal import messages, stages
from headrace.removal.errors import HintUnusable, PictureUnreadable, TargetUnusable
from headrace.removal.images import animation, formats
from headrace.removal.images.comparison import Triptych
from headrace.removal.images.shared import FEWEST, MAX_VIEWS, MOST_BYTES
from headrace.removal.images.stages import mark_of
from headrace.removal.order import (
    ENDINGS,
    FailureCode,
    Hint,
    Names,
    RemovalOrder,
    Stage,
    StageOrder,
    StageReport,
)
from headrace.removal.paths import KINDS
from headrace.removal.progress import Progress
from headrace.removal.report import ManyOrder, ManyReport, MarkedRegion, Order, Removal, Report
from headrace.removal.verdict import Verdict

MAX_PIXELS = 250_000_000
# How far the work is, in percent, when a stage ends.
_PREPARED, _DETECTED, _INPAINTED, _PACKAGED = 5, 45, 85, 100
_DISK_FULL = (errno.ENOSPC, errno.EFBIG, errno.EDQUOT)
_ORIENTATION, _FIRST_SIDEWAYS = 274, 5
# The service's messages name the fields of its API.
_MESSAGES = {
    FailureCode.NO_MARK: "No mark was seen. If there is one, draw a box around it (--box).",
    FailureCode.NEEDS_REVIEW: "Needs review: there may be a mark, but it is not certain. Say which region is the "
    "mark (--only, as `headrace detect` numbers them) or where it is (--box).",
    FailureCode.MARK_REMAINS: "The mark could not be taken off without leaving a trace. Draw it (--mask).",
}


def process(order: Order, progress: Progress, scratch: Callable[[], Path]) -> Report:
    """Look for a mark, and take it off if a result is asked for. Files of the work lie in the folder of ``scratch``.

    Overwrites the files that the order names. Raises ``PictureUnreadable``,
    ``HintUnusable``, ``CandidateUnknown``, ``TargetUnusable`` and ``ModelDamaged``.
    """
    return _Job(order, scratch()).process(progress)


def process_many(many: ManyOrder, progress: Progress, scratch: Callable[[], Path]) -> ManyReport:
    """Take the mark that pictures of one size have in common off each of them, as the service does with one batch.

    Pictures that cannot be read, and those whose group has no mark in common, get no report: they are left to be done
    alone.
    """
    folder = scratch()
    sizes: dict[tuple[int, int], list[int]] = defaultdict(list)
    for number, order in enumerate(many.orders):
        size = _still_size(order.source)
        if size is not None:
            sizes[size].append(number)
    groups = {size: numbers for size, numbers in sizes.items() if len(numbers) >= FEWEST}
    total = sum(len(numbers) for numbers in groups.values())
    reports: list[Report | None] = [None] * len(many.orders)
    done = 0
    for (width, height), numbers in groups.items():
        matte: Path | None = None
        most = min(MAX_VIEWS, MOST_BYTES // max(1, 3 * width * height))
        for number in numbers:
            start = 100 * done // total
            done += 1
            part = _part(progress, start, 100 * done // total)
            others = [many.orders[other].source for other in numbers if other != number][:most]
            try:
                job = _Job(many.orders[number], _subfolder(folder, number), batch=[] if matte else others, matte=matte)
                reports[number] = job.process(part)
            except PictureUnreadable:  # reported when its own turn comes
                continue
            matte = matte or job.learned
            if matte is None:
                break  # the pictures have nothing in common: learning again would find the same
    progress(100)
    return ManyReport(tuple(reports))


def _subfolder(folder: Path, number: int) -> Path:
    made = folder / str(number)
    made.mkdir()
    return made


def _still_size(source: str) -> tuple[int, int] | None:
    """As the picture is shown; None for an animation and what cannot be read."""
    try:
        with Image.open(source) as opened:
            if getattr(opened, "n_frames", 1) > 1 and opened.format != "MPO":
                return None
            turned = opened.getexif().get(_ORIENTATION, 1) >= _FIRST_SIDEWAYS
            return opened.size[::-1] if turned else opened.size
    except (Image.DecompressionBombError, *formats.BROKEN):
        return None


class _Job:
    """One order, and what its stages have found so far."""

    def __init__(self, order: Order, folder: Path, *, batch: Sequence[str] = (), matte: Path | None = None) -> None:
        self._order = order
        self._folder = folder
        kind, frames = _kind_of(order)
        self._animated = frames > 1
        if frames > 1 and order.strength != 1:
            raise HintUnusable("Of animations all of the change is made: leave out --strength.")
        views = [f"view.{number}" for number in range(len(batch))]
        self._stage_order = _stage_order(order, kind, frames, folder, views=views, shared=bool(batch or matte))
        files = [(Names.SOURCE, order.source), (Names.MASK, order.drawn), (Names.MATTE, matte)]
        for name, path in [*files, *zip(views, batch, strict=True)]:
            if path is not None:
                (folder / name).symlink_to(Path(path).resolve())

    @property
    def learned(self) -> Path | None:
        """The file of the mark that the pictures of a batch have in common, if there is one."""
        matte = Path(self._stage_order.path(Names.MATTE))
        return matte if matte.exists() else None

    def process(self, progress: Progress) -> Report:
        began = time.monotonic()
        facts = self._run(Stage.PREPROCESSING, progress, 0, _PREPARED).facts
        found = self._run(Stage.DETECTING, progress, _PREPARED, _DETECTED)
        self._stage_order = replace(self._stage_order, earlier=found.facts)
        if self._order.mask is not None and self._has_mark():
            with writing(self._order.mask):
                mask = mark_of(self._stage_order).tight
                Image.fromarray(mask).convert("L").save(self._order.mask, "PNG")
        removal = None if self._order.result is None else self._remove(found, progress)
        progress(_PACKAGED)
        return Report(
            width=facts["width"],
            height=facts["height"],
            score=found.facts["score"],
            regions=tuple(_region(each) for each in found.candidates),
            covered=found.facts["covered"],
            seconds=round(time.monotonic() - began, 3),
            removal=removal,
        )

    def _has_mark(self) -> bool:
        return any(Path(self._stage_order.path(name)).exists() for name in (Names.DETECTION, Names.MATTE))

    def _run(self, stage: Stage, progress: Progress, start: int, end: int) -> StageReport:
        try:
            report = stages.run(replace(self._stage_order, stage=stage), _part(progress, start, end))
        except HeadraceError as exc:
            message = exc.message.replace(f"{self._folder}/{Names.SOURCE}", self._order.source)
            raise type(exc)(message.replace(f"{self._folder}/", "")) from exc
        except OSError as exc:
            if exc.errno not in _DISK_FULL:
                raise
            raise TargetUnusable(f"{self._order.result} could not be written: {exc.strerror}") from exc
        progress(end)
        _give_back_memory()
        return report

    def _remove(self, found: StageReport, progress: Progress) -> Removal:
        if found.refused is not None:
            return _refusal(found)
        solved = self._run(Stage.INPAINTING, progress, _DETECTED, _INPAINTED)
        if solved.refused is not None:
            return _refusal(solved)
        packed = self._run(Stage.PACKAGING, progress, _INPAINTED, _PACKAGED)
        if packed.refused is not None:
            return _refusal(packed)
        self._deliver()
        facts = {**solved.facts, **packed.facts}
        return Removal(
            removed=True,
            reason=None,
            confidence=facts["confidence"],
            poor=facts["verdict"] != Verdict.CLEAN,
            computed=facts["computed"],
            invented=facts["invented"],
            warnings=tuple(facts.get("warnings", ())),
            doubt=facts.get("doubt"),
            verdict=Verdict(facts["verdict"]),
        )

    def _deliver(self) -> None:
        """The result and the comparison, where the order wants them."""
        assert self._order.result is not None
        written = self._stage_order.path(self._stage_order.result)
        with writing(self._order.result):
            shutil.copyfile(written, self._order.result)
        if self._order.compare is not None:
            before, after = (self._first_frame(path) for path in (self._stage_order.path(Names.SOURCE), written))
            with writing(self._order.compare):
                Triptych.of(before, mark_of(self._stage_order).tight).save(self._order.compare, after)

    def _first_frame(self, path: str) -> Any:
        if self._animated:
            return animation.read(path).frames[0]
        return formats.read(path)[0]


def _kind_of(order: Order) -> tuple[str, int]:
    """The kind of the result and the number of frames. Raises ``PictureUnreadable`` and ``TargetUnusable``."""
    name = Path(order.source).name
    _register_heic(order.source)
    Image.MAX_IMAGE_PIXELS = None  # checked here, with a message of our own
    try:
        with Image.open(order.source) as opened:
            width, height = opened.size
            kind, frames = "JPEG" if opened.format == "MPO" else opened.format or "PNG", 1
        if width * height > MAX_PIXELS:
            raise PictureUnreadable(
                f"{name} has {width * height / 1e6:,.0f} megapixels: {MAX_PIXELS / 1e6:,.0f} are the most. Make it "
                "smaller first."
            )
        if animation.is_animated(order.source):
            film = animation.read(order.source)
            kind, frames = film.kind, len(film.frames)
    except animation.TooLong as exc:
        raise PictureUnreadable(str(exc)) from exc
    except UnidentifiedImageError as exc:
        raise PictureUnreadable(f"{name} is no picture, clip, PDF or deck of slides.") from exc
    except formats.BROKEN as exc:
        raise PictureUnreadable(f"{order.source} is not a picture that can be read: {exc}") from exc
    if order.result is None:
        return kind, frames
    wanted = KINDS.get(Path(order.result).suffix.lower(), kind)
    if frames > 1 and wanted != kind:
        raise TargetUnusable(f"An animated {kind} stays one: let --to end in .{ENDINGS[kind.lower()]}.")
    return wanted, frames


def _register_heic(source: str) -> None:
    with contextlib.suppress(OSError), Path(source).open("rb") as file:
        head = file.read(12)
        if head[4:8] == b"ftyp" and head[8:12] in HEVC_BRANDS | GENERAL_BRANDS:
            from headrace.assets.heif import plugin  # loads Pillow, which other media do not need

            plugin.register()


def _part(progress: Progress, start: int, end: int) -> Progress:
    return lambda percent: progress(start + (end - start) * percent // 100)


def _stage_order(order: Order, kind: str, frames: int, folder: Path, *, views: list[str], shared: bool) -> StageOrder:
    wanted = RemovalOrder(
        asset_id="",
        sha256="",
        format=kind.lower(),
        units=1,
        output_format=kind.lower(),
        quality="HIGH" if order.thorough else "STANDARD",
        hints=[Hint(boxes=list(order.boxes), keep=list(order.keep))] if order.boxes or order.keep else [],
        mask_asset_id=None if order.drawn is None else "drawn",
        candidates=list(order.only),
        accept_poor=True,  # the report says so, and the caller decides
        frames=frames,
        batch_id="local" if shared else None,
    )
    return StageOrder(
        "IMAGE",
        Stage.PREPROCESSING,
        str(folder),
        wanted,
        threads=order.threads,
        least_score=order.least_score,
        strength=order.strength,
        views=views,
    )


def _region(candidate: dict[str, Any]) -> MarkedRegion:
    left, top, width, height = candidate["box"]
    return MarkedRegion(left, top, width, height, candidate["score"], candidate["certain"])


def _refusal(report: StageReport) -> Removal:
    assert report.refused is not None
    reason = report.facts.get("reason") or _MESSAGES.get(report.refused, messages.MESSAGES[report.refused])
    review = report.refused is FailureCode.NEEDS_REVIEW
    return Removal(False, reason, report.facts.get("confidence", 0.0), False, 0, 0, (), needs_review=review)


@contextlib.contextmanager
def writing(target: str) -> Iterator[None]:
    """Names the file in an error of writing it. Raises ``TargetUnusable``."""
    try:
        yield
    except (OSError, ValueError, KeyError) as exc:
        reason = exc.strerror if isinstance(exc, OSError) and exc.strerror else str(exc)
        raise TargetUnusable(f"{target} could not be written: {reason}") from exc


def _give_back_memory() -> None:
    """The networks' threads leave freed memory with the process otherwise, beside what the next stage needs."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)
