"""Picture files: read and written in a child process of little power, since a file from anywhere may be made to harm.

The child (``python -m headrace.removal.pictures``) reads one order as JSON on standard input, decodes, looks, solves
and writes, and says what it did as JSON on standard output. It has limits on memory and processor time of its own.
"""

import contextlib
import ctypes
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headrace.removal import comparison, formats, places
from headrace.removal.errors import ModelDamaged, PictureUnreadable, RemovalMissing, TargetUnusable
from headrace.tasks.isolation import confinement
from headrace.tasks.registry import ProcessLimits

if TYPE_CHECKING:
    from headrace.removal.eye import Region, Sight

# Pictures of 25 megapixels, the largest that are worked on at their full size, need most: under 2 GB. Address space
# counts what is only reserved, too, and comes to 3. Each two threads more look at one more tile at a time.
_GIGABYTES, _GIGABYTES_A_TILE = 4, 1
# By themselves these libraries reserve address space for as many threads as the machine has cores: at 16, a gigabyte.
_TWO_THREADS = {"OPENBLAS_NUM_THREADS": "2", "OPENCV_FOR_THREADS_NUM": "2"}
MOST_PIXELS = 250_000_000
_UNREADABLE, _DAMAGED, _UNWRITABLE = 65, 69, 73


@dataclass(frozen=True, slots=True)
class Order:
    source: str
    result: str | None = None  # None is look only
    mask: str | None = None  # where the mark's pixels go
    threads: int = 2
    least_score: float = 0.5
    force: bool = False  # replace files that are there
    boxes: tuple[tuple[int, int, int, int], ...] = ()  # left, top, width, height: the mark is in these
    keep: tuple[tuple[int, int, int, int], ...] = ()  # nothing in these is changed
    known: str | None = None  # a picture that is white where the mark is
    only: tuple[int, ...] = ()  # numbers of regions, from 1; none is all
    strength: float = 1.0  # how much of the change is made
    compare: str | None = None  # before, mask and after beside each other


def carry_out(order: Order) -> dict[str, Any]:
    """What was seen in the picture, and what was done, as the child tells it.

    What can be known to be wrong with the files is said before anything is computed, and results appear whole or not
    at all.
    """
    _require_engines()
    source = Path(order.source)
    places.require_source(source)
    if order.result is not None:
        places.require_result(Path(order.result), source, force=order.force)
    if order.mask is not None:
        places.require_mask(Path(order.mask), source, force=order.force)
    if order.compare is not None:
        places.require_mask(Path(order.compare), source, force=order.force, what="comparison")
    if order.known is not None:
        places.require_source(Path(order.known))
    with (
        places.written_at_once(order.result, force=order.force) as result,
        places.written_at_once(order.mask, force=order.force) as mask,
        places.written_at_once(order.compare, force=order.force) as compare,
    ):
        return _told_by_child(order, replace(order, result=result, mask=mask, compare=compare))


def _environment() -> dict[str, str]:
    """The child's: it opens what strangers made, and needs no password of ours."""
    return {name: value for name, value in os.environ.items() if not name.startswith("HEADRACE_")} | _TWO_THREADS


def _told_by_child(order: Order, drafted: Order) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, "-m", "headrace.removal.pictures"],
        input=json.dumps(asdict(drafted)),
        env=_environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode == _UNREADABLE:
        raise PictureUnreadable(done.stderr.strip() or None)
    if done.returncode == _DAMAGED:
        raise ModelDamaged(done.stderr.strip() or None)
    if done.returncode == _UNWRITABLE:
        raise TargetUnusable(f"{order.result or order.mask} could not be written: {done.stderr.strip()}")
    if done.returncode != 0:
        last = done.stderr.strip().splitlines()[-1:] or [f"its process ended with {done.returncode}"]
        raise PictureUnreadable(f"{order.source} could not be worked on: {last[0]}")
    report: dict[str, Any] = json.loads(done.stdout)
    return report


def limits(threads: int) -> ProcessLimits:
    """What the child may use."""
    more = max(0, threads // 2 - 1)
    return ProcessLimits(memory_bytes=(_GIGABYTES + _GIGABYTES_A_TILE * more) * 1024**3, cpu_seconds=600)


def _require_engines() -> None:
    import importlib.util

    missing = [name for name in ("cv2", "numpy", "onnxruntime", "PIL") if importlib.util.find_spec(name) is None]
    if missing:
        raise RemovalMissing


def main() -> int:
    order = Order(**json.loads(sys.stdin.read()))
    with confinement.limited(limits(order.threads)):
        try:
            report = _work(order)
        except _Failed as exc:
            sys.stderr.write(f"{exc}\n")
            return exc.code
        except ModelDamaged as exc:
            sys.stderr.write(f"{exc.message}\n")
            return _DAMAGED
    sys.stdout.write(json.dumps(report))
    return 0


class _Failed(Exception):
    """Says in a line what is wrong with a file; ``code`` is the child's exit code."""

    def __init__(self, message: str, code: int) -> None:
        super().__init__(message)
        self.code = code


def _work(order: Order) -> dict[str, Any]:
    from headrace.removal.eye import look, solve

    picture, original, kind = _read(order)
    sight = look(picture, threads=order.threads, hints=_hints(order, picture))
    _give_back_memory()
    sight, seen = _chosen(order, sight)
    report: dict[str, Any] = {
        "width": sight.width,
        "height": sight.height,
        "score": round(sight.score, 4),
        "seen": bool(seen),
        "regions": [asdict(region) for region in seen],
        "covered": round(sight.covered, 6),
    }
    if order.mask is not None:
        _save_plane(sight.mask_tight, order.mask)
    if order.result is None:
        return report
    before = comparison.small(picture) if order.compare else None
    mark = comparison.small(comparison.as_picture(sight.mask_tight)) if order.compare else None
    marked = picture.copy() if order.strength != 1 else None
    restoration = solve(picture, sight, least_score=order.least_score, in_place=True, threads=order.threads)
    del sight
    _give_back_memory()
    removed = restoration.refused is None
    report |= {"removed": removed, "reason": restoration.refused,
               "confidence": restoration.confidence, "poor": restoration.poor,
               "computed": restoration.inverted, "invented": restoration.filled,
               "notes": original.notes if removed else []}  # fmt: skip
    if removed:
        result = (
            restoration.picture if marked is None else comparison.blended(marked, restoration.picture, order.strength)
        )
        with _writing():
            formats.write(result, original, order.result, kind)
            if order.compare is not None and before is not None and mark is not None:
                comparison.save(order.compare, before, mark, comparison.small(result))
    return report


def _hints(order: Order, picture: Any) -> Any:
    """What the order tells of the mark, if anything."""
    from headrace.removal.eye import Hints

    if not (order.boxes or order.keep or order.known):
        return None
    mask = None
    if order.known is not None:
        try:
            mask = comparison.read_mask(order.known)
        except (OSError, ValueError, SyntaxError) as exc:
            raise _Failed(f"{order.known} is not a picture that can be read: {exc}", _UNREADABLE) from exc
        if mask.shape != picture.shape[:2]:
            size = f"{picture.shape[1]} x {picture.shape[0]}"
            raise _Failed(f"{order.known} has another size than the picture, which has {size} pixels", _UNREADABLE)
    boxes, keep = (tuple((left, top, wide, high) for left, top, wide, high in b) for b in (order.boxes, order.keep))
    try:
        return Hints(boxes=boxes, keep=keep, mask=mask)
    except ValueError as exc:
        raise _Failed(str(exc), _UNREADABLE) from exc


def _chosen(order: Order, sight: "Sight") -> "tuple[Sight, list[Region]]":
    """The sight without what is not wanted, and the regions that are likely enough: those that removal takes off."""
    seen = [region for region in sight.regions if region.score >= order.least_score]
    if order.only:
        numbers = [n for n in order.only if 0 < n <= len(seen)]
        if len(numbers) < len(order.only):
            raise _Failed(
                f"there are {len(seen)} regions, numbered from 1 as `headrace detect` lists them", _UNREADABLE
            )
        sight = sight.only(numbers)  # the likeliest come first: numbers are the same
        seen = list(sight.regions)
    return sight, seen


def _save_plane(mask: Any, target: str) -> None:
    from PIL import Image

    with _writing():
        Image.fromarray(comparison.as_picture(mask)).convert("L").save(target, "PNG")


def _read(order: Order) -> tuple[Any, formats.Original, str]:
    from PIL import Image

    Image.MAX_IMAGE_PIXELS = MOST_PIXELS
    try:
        picture, original = formats.read(order.source)
        kind = original.kind if order.result is None else formats.kind_of_result(order.result, original)
    except formats.NotCleanable as exc:
        raise _Failed(str(exc), _UNREADABLE) from exc
    except (Image.DecompressionBombError, OSError, ValueError, SyntaxError) as exc:
        raise _Failed(f"{order.source} is not a picture that can be read: {exc}", _UNREADABLE) from exc
    if original.transparency is not None and kind in formats.NO_TRANSPARENCY:
        original.notes.append(f"{kind} has no transparency")
    return picture, original, kind


@contextlib.contextmanager
def _writing() -> Iterator[None]:
    try:
        yield
    except (OSError, ValueError, KeyError) as exc:
        reason = exc.strerror if isinstance(exc, OSError) and exc.strerror else str(exc)
        raise _Failed(reason, _UNWRITABLE) from exc


def _give_back_memory() -> None:
    """What the networks' threads have freed stays with the process otherwise, beside what the next stage needs."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)


if __name__ == "__main__":
    sys.exit(main())
