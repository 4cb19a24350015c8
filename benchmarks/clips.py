"""What becomes of strangers' clips: left alone without a mark, cleaned with one that FFmpeg put on.

    python -m benchmarks.clips FOLDER [--kinds none,logo,…] [--most N] [--keep FOLDER] [--json]

Without a mark a clip is to come back as "no mark" or with an error that has a code. With one it is to lose the mark and
nothing else: frames, times, turning, colours, sound and subtitles are compared with the marked file. Clips are not part
of this repository; README.md says where to find some.
"""

import argparse
import collections
import hashlib
import itertools
import json
import resource
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import av
import cv2
import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from benchmarks.clip_marks import ENDINGS, KINDS, mark
from headrace.errors import HeadraceError
from headrace.removal.media import media_of
from headrace.removal.order import Order
from headrace.removal.report import Candidate, Outcome
from headrace.removal.runner import carry_out
from headrace.removal.thresholds import MIN_AUTO_SCORE
from headrace.removal.video import rotation
from headrace.removal.video.model import Kind
from headrace.removal.video.probing import Facts, probe
from headrace.removal.video.sampling import decoded, native
from headrace.removal.video.static_marks import overlap

NONE = "none"
_LIMIT_S = 600  # a clip that takes longer hangs
_COMPARED = 40  # frames
_INKED = 24  # levels of a mask: brighter than its black ground
_BETTER = 3.0  # dB: with less gained inside the mark, a result is wrong
_ON_IT = 0.5  # of the smaller of two boxes
console = Console(stderr=True)


@dataclass
class Row:
    clip: str
    kind: str
    outcome: str = ""
    reason: str = ""
    seconds: float = 0.0
    cpu_s: float = 0.0
    frames: int = 0
    facts: str = ""
    damage: list[str] = field(default_factory=list)  # what else changed
    before: float = 0.0  # dB inside the mark, before and after; and outside it, after
    after: float = 0.0
    telea: float = 0.0  # and inside it, by OpenCV's Telea with the true mask
    outside: float = 0.0
    worst_shot: float = 0.0  # how much of the mark the check finds in the worst one
    found: float = 0.0  # the score of what was found where the mark is
    bits: float = 0.0  # bit rate of the result as a share of the marked clip's


class Hung(Exception):
    pass


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--kinds", default=f"{NONE},logo,text,jumping", help=f"of {NONE}, {', '.join(KINDS)}")
    parser.add_argument("--most", type=int, default=1000, help="clips, from all over the folder")
    parser.add_argument("--of-each", type=int, help="so many of the kinds for each clip, in turn; all without it")
    parser.add_argument("--keep", type=Path, help="keep marked clips, results and previews here")
    parser.add_argument("--rows", type=Path, help="append each row to this file, and skip what is in it")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    av.logging.set_level(av.logging.PANIC)
    signal.signal(signal.SIGALRM, _hung)
    paths = [path for path in sorted(args.folder.iterdir()) if path.is_file()]
    paths = paths[:: max(1, -(-len(paths) // args.most))]
    rows = _known(args.rows)
    done = {(row.clip, row.kind) for row in rows}
    kinds = args.kinds.split(",")
    for number, path in enumerate(paths):
        count = args.of_each or len(kinds)
        for kind in (kinds * 2)[number * count % len(kinds) :][:count]:
            if (path.name, kind) in done:
                continue
            row = one(path, kind, args.keep)
            rows.append(row)
            console.print(f"{row.clip} {kind}: {row.outcome} {row.reason[:90]} {' '.join(row.damage)}", markup=False)
            if args.rows:
                with args.rows.open("a") as file:
                    file.write(json.dumps(vars(row)) + "\n")
    figures = summary(rows)
    if args.json:
        print(json.dumps(figures))


def _known(path: Path | None) -> list[Row]:
    if path is None or not path.exists():
        return []
    return [Row(**json.loads(line)) for line in path.read_text().splitlines()]


def _hung(*_: object) -> None:
    raise Hung


def one(path: Path, kind: str, keep: Path | None) -> Row:
    """One clip with one kind of mark; whatever happens is in the row."""
    row = Row(path.name, kind)
    try:
        facts = probe(str(path))
    except HeadraceError as exc:
        row.outcome, row.reason = exc.code, exc.message
        if kind != NONE:
            return row
    else:
        row.frames = facts.frames
        row.facts = f"{facts.format} {facts.codec} {facts.width}x{facts.height} {facts.layout.name} {facts.rotation}"
    with tempfile.TemporaryDirectory() as scratch:
        source, mask = path, None
        if kind != NONE:
            try:
                made = mark(path, facts, kind, Path(scratch))
            except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as exc:
                row.outcome, row.reason = "not marked", str(exc.stderr)[-200:]
                return row
            source, mask = made.clip, made.mask
        ending = source.suffix.lower() if source.suffix.lower() in ENDINGS else ".mkv"
        result, preview = Path(scratch, f"result{ending}"), Path(scratch, "preview.png")
        found = _clean(row, source, result, preview)
        if mask is not None:
            row.found = max((each.score for each in found if _lies_on(each, facts, mask)), default=0.0)
        if result.exists():
            _compare(row, path, source, result, mask)
        for file in (source, result, preview):
            if keep is not None and file.exists() and file != path:
                shutil.move(file, keep / f"{path.stem}.{kind}.{file.name}")
    return row


def _compare(row: Row, path: Path, source: Path, result: Path, mask: Path | None) -> None:
    row.damage += damage(source, result)
    row.bits = probe(str(result)).bit_rate / max(1, probe(str(source)).bit_rate)
    if mask is not None:
        row.before, row.after, row.telea, row.outside = quality(path, source, result, mask)


def _clean(row: Row, source: Path, result: Path, preview: Path) -> tuple[Candidate, ...]:
    began, spent = time.monotonic(), _cpu()
    signal.alarm(_LIMIT_S)
    try:
        if media_of(source) != "VIDEO":
            row.outcome = "no clip"
            return ()
        report = carry_out(Order(str(source), str(result), comparison=str(preview)))
        assert report.outcome is not None
        row.outcome, row.reason = str(report.outcome), report.reason or ""
        row.damage = list(report.warnings)
        row.worst_shot = (report.check and report.check.worst_shot) or 0.0
        return report.candidates
    except HeadraceError as exc:
        row.outcome, row.reason = exc.code, exc.message
    except Hung:
        row.outcome = "HUNG"
    except Exception as exc:  # noqa: BLE001 - the figure is how many there are
        row.outcome, row.reason = "CRASHED", f"{type(exc).__name__}: {exc}"
    finally:
        signal.alarm(0)
        row.seconds, row.cpu_s = round(time.monotonic() - began, 2), round(_cpu() - spent, 2)
    return ()


def _lies_on(candidate: Candidate, facts: Facts, mask: Path) -> bool:
    """Whether it is the mark: in the middle of its time, half of the smaller of the two lies in the other."""
    if candidate.kind == Kind.MOVING:
        return True
    middle = sum(candidate.seconds[0]) / 2
    shown = probe(str(mask))
    number = min(int(middle * float(shown.rate)), shown.frames - 1)
    over = next(itertools.islice(_bright(shown), number, None)) > _INKED
    if not over.any():
        return False
    left, top, width, height = cv2.boundingRect(over.view(np.uint8))
    box = rotation.box_as_stored(candidate.box, facts)
    return overlap((top, top + height, left, left + width), box) > _ON_IT


def _cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def damage(source: Path, result: Path) -> list[str]:
    """What of the file is not as it was, but for the picture."""
    was, now = probe(str(source)), probe(str(result))
    found = []
    if was.frames != now.frames:
        found.append(f"frames {was.frames} -> {now.frames}")
    elif _times(was) != _times(now):
        found.append("times")
    if (was.rotation, was.matrix) != (now.rotation, now.matrix):
        found.append(f"turned {was.rotation} -> {now.rotation}")
    if (was.width, was.height) != (now.width, now.height):
        found.append("size")
    with av.open(str(source)) as one, av.open(str(result)) as other:
        for name in ("color_primaries", "color_trc", "colorspace", "color_range"):
            tags = [getattr(each.streams.video[0].codec_context, name) for each in (one, other)]
            if tags[0] != tags[1] and (name, *tags) != ("color_range", 0, 1):  # unsaid, it is the usual one
                found.append(f"{name} {tags[0]} -> {tags[1]}")
    tracks = ((kind, _packets(source, kind), _packets(result, kind)) for kind in ("audio", "subtitle"))
    return found + [f"{kind} {len(one)} -> {len(other)}" for kind, one, other in tracks if one != other]


def _times(facts: Facts) -> list[int]:
    """Milliseconds since the first frame; Matroska counts in them."""
    return [round((stamp - facts.stamps[0]) * facts.time_base * 1000) for stamp in facts.stamps]


def _packets(path: Path, kind: str) -> list[str]:
    with av.open(str(path)) as container:
        tracks = [stream for stream in container.streams if stream.type == kind]
        if not tracks:
            return []
        packets = (bytes(packet) for packet in container.demux(tracks) if packet.size and packet.dts is not None)
        return sorted(hashlib.sha256(packet).hexdigest() for packet in packets)


def quality(clean: Path, marked: Path, result: Path, mask: Path) -> tuple[float, float, float, float]:
    """In dB: inside the mark against the clean clip, before, after, and by Telea; outside it against the marked one."""
    wrong = np.zeros((4, 2))
    facts = [probe(str(path)) for path in (clean, marked, result, mask)]
    step = max(1, facts[1].frames // _COMPARED)
    for number, planes in enumerate(zip(*(_bright(each) for each in facts), strict=False)):
        if number % step:
            continue
        one, before, after, over = planes
        inside = cv2.dilate((over > _INKED).view(np.uint8), np.ones((5, 5), np.uint8))
        outside = ~cv2.dilate(inside, np.ones((33, 33), np.uint8)).view(np.bool_)
        telea = cv2.inpaint(np.clip(before, 0, 255).astype(np.uint8), inside, 3, cv2.INPAINT_TELEA).astype(np.float32)
        within = inside.view(np.bool_)
        pairs = ((before, one, within), (after, one, within), (telea, one, within), (after, before, outside))
        for which, (a, b, where) in enumerate(pairs):
            if where.any():
                wrong[which] += ((a[where] - b[where]) ** 2).sum(), where.sum()
    before_db, after_db, telea_db, outside_db = (_db(*each) for each in wrong)
    return before_db, after_db, telea_db, outside_db


def _bright(facts: Facts) -> Iterator[NDArray[np.float32]]:
    layout = facts.layout
    for frame in decoded(facts):
        plane = native(frame, layout).to_ndarray()[: facts.height, : facts.width]
        yield (plane >> layout.shift).astype(np.float32) if plane.ndim == 2 else plane[0].astype(np.float32)


def _db(total: float, count: float) -> float:
    return round(float(10 * np.log10(255**2 / max(total / max(count, 1), 1e-3))), 2)


def summary(rows: list[Row]) -> dict[str, Any]:
    columns = ("before", "after", "telea", "outside", "bits")
    table = Table("kind", "clips", "found", "outcomes", "wrong", *columns, "other damage", box=None)
    figures: dict[str, Any] = {}
    for kind in dict.fromkeys(row.kind for row in rows):
        mine = [row for row in rows if row.kind == kind]
        counts = collections.Counter(row.outcome for row in mine)
        gone = [row for row in mine if row.outcome == Outcome.REMOVED]
        damaged = [row for row in gone if row.damage]
        wrong = [row for row in gone if kind == NONE or row.after < row.before + _BETTER]
        found = sum(row.found >= MIN_AUTO_SCORE for row in mine)
        middle = {name: _median([getattr(row, name) for row in gone]) for name in columns}
        outcomes = ", ".join(f"{name} {count}" for name, count in counts.most_common())
        shown = (f"{value:.2f}" for value in middle.values())
        table.add_row(kind, str(len(mine)), str(found), outcomes, str(len(wrong)), *shown, str(len(damaged)))
        figures |= {f"{kind}_{name.replace(' ', '_')}": count for name, count in counts.items()}
        figures |= {f"{kind}_{name}_median": value for name, value in middle.items()}
        figures |= {f"{kind}_damaged": len(damaged), f"{kind}_wrong": len(wrong), f"{kind}_found": found}
        figures[f"{kind}_cpu_s_a_frame"] = _median([row.cpu_s / max(1, row.frames) for row in gone])
    console.print(table)
    return figures


def _median(values: list[float]) -> float:
    return round(float(np.median(values)), 4) if values else 0.0


if __name__ == "__main__":
    main()
