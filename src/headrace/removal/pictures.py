"""Picture files: read and written in a child process of little power, since a file from anywhere may be made to harm.

The child (``python -m headrace.removal.pictures``) reads one order as JSON on standard input, decodes, looks, solves
and writes, and says what it did as JSON on standard output. It has limits on memory and processor time of its own.
"""

import json
import subprocess
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from headrace.removal.errors import PictureUnreadable, RemovalMissing
from headrace.tasks.isolation import confinement
from headrace.tasks.registry import ProcessLimits

# A picture of 100 megapixels needs under 1 GB; address space counts what is only reserved too.
LIMITS = ProcessLimits(memory_bytes=3 * 1024**3, cpu_seconds=600)
MOST_PIXELS = 250_000_000
_UNREADABLE = 65


@dataclass(frozen=True, slots=True)
class Order:
    source: str
    result: str | None = None  # None is look only
    mask: str | None = None
    threads: int = 2
    least_score: float = 0.0


def carry_out(order: Order) -> dict[str, Any]:
    """What was seen in the picture, and what was done, as the child tells it."""
    _require_engines()
    done = subprocess.run(
        [sys.executable, "-m", "headrace.removal.pictures"],
        input=json.dumps(asdict(order)),
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode == _UNREADABLE:
        raise PictureUnreadable(done.stderr.strip() or None)
    if done.returncode != 0:
        last = done.stderr.strip().splitlines()[-1:] or [f"its process ended with {done.returncode}"]
        raise PictureUnreadable(f"{order.source} could not be worked on: {last[0]}")
    report: dict[str, Any] = json.loads(done.stdout)
    return report


def _require_engines() -> None:
    import importlib.util

    missing = [name for name in ("cv2", "numpy", "onnxruntime", "PIL") if importlib.util.find_spec(name) is None]
    if missing:
        raise RemovalMissing


def main() -> int:
    order = Order(**json.loads(sys.stdin.read()))
    with confinement.limited(LIMITS):
        try:
            report = _work(order)
        except _unreadable_errors() as exc:
            sys.stderr.write(f"{order.source} is not a picture that can be read: {exc}\n")
            return _UNREADABLE
    sys.stdout.write(json.dumps(report))
    return 0


def _unreadable_errors() -> tuple[type[Exception], ...]:
    from PIL import Image, UnidentifiedImageError

    return (UnidentifiedImageError, Image.DecompressionBombError, OSError, ValueError, SyntaxError)


def _work(order: Order) -> dict[str, Any]:
    import numpy as np
    from PIL import Image, ImageOps

    from headrace.removal.eye import look, solve

    Image.MAX_IMAGE_PIXELS = MOST_PIXELS
    with Image.open(order.source) as opened:
        kind, info = opened.format or "PNG", {str(k): v for k, v in opened.info.items()}
        upright = ImageOps.exif_transpose(opened)
        transparency = upright.getchannel("A") if "A" in upright.getbands() else None
        if upright.mode.startswith("I;16") or upright.mode == "I":
            picture = np.repeat(
                (np.asarray(upright).astype(np.int64) >> 8).clip(0, 255).astype(np.uint8)[..., None], 3, 2
            )
        else:
            picture = np.array(upright.convert("RGB"))
        del upright
    sight = look(picture, threads=order.threads)
    report: dict[str, Any] = {
        "width": sight.width,
        "height": sight.height,
        "score": round(sight.score, 4),
        "regions": [asdict(region) for region in sight.regions],
        "covered": round(float(sight.loose.mean()), 6),
    }
    if order.mask is not None:
        Image.fromarray(sight.mask_tight.astype(np.uint8) * 255).save(order.mask, "PNG")
    if order.result is None:
        return report
    if sight.regions and sight.score < order.least_score:
        return report | {"removed": False, "reason": f"The mark is too doubtful: score {sight.score:.2f}."}
    restoration = solve(picture, sight, in_place=True)
    report |= {"removed": restoration.refused is None, "reason": restoration.refused,
               "confidence": restoration.confidence, "computed": restoration.inverted,
               "invented": restoration.filled}  # fmt: skip
    if restoration.refused is None:
        _save(Image.fromarray(restoration.picture), transparency, order.result, kind, info)
    return report


def _save(image: Any, transparency: Any, path: str, kind: str, info: dict[str, Any]) -> None:
    """As the same kind of file, with its colour profile; a JPEG as good as it came."""
    from PIL import Image

    suffix = Path(path).suffix.lower()
    kind = Image.registered_extensions().get(suffix, kind)
    options: dict[str, Any] = {"icc_profile": info["icc_profile"]} if info.get("icc_profile") else {}
    if kind == "JPEG":
        options |= {"quality": 95, "subsampling": 0}
    elif transparency is not None:
        image.putalpha(transparency)
    image.save(path, kind, **options)


if __name__ == "__main__":
    sys.exit(main())
