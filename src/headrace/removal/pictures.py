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
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from headrace.removal.errors import PictureUnreadable, RemovalMissing
from headrace.tasks.isolation import confinement
from headrace.tasks.registry import ProcessLimits

# Pictures of 25 megapixels, the largest that are worked on at their full size, need most: under 2 GB. Address space
# counts what is only reserved, too, and comes to 3. Each two threads more look at one more tile at a time.
_GIGABYTES, _GIGABYTES_A_TILE = 4, 1
# By themselves these libraries reserve address space for as many threads as the machine has cores: at 16, a gigabyte.
_TWO_THREADS = {"OPENBLAS_NUM_THREADS": "2", "OPENCV_FOR_THREADS_NUM": "2"}
MOST_PIXELS = 250_000_000
_UNREADABLE = 65
_STRIP = 512


@dataclass(frozen=True, slots=True)
class Order:
    source: str
    result: str | None = None  # None is look only
    mask: str | None = None
    threads: int = 2
    least_score: float = 0.5


def carry_out(order: Order) -> dict[str, Any]:
    """What was seen in the picture, and what was done, as the child tells it."""
    _require_engines()
    done = subprocess.run(
        [sys.executable, "-m", "headrace.removal.pictures"],
        input=json.dumps(asdict(order)),
        env={**os.environ, **_TWO_THREADS},
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
        ImageOps.exif_transpose(opened, in_place=True)
        # Not by the band: LAB has an A that is a colour.
        transparency = opened.getchannel("A") if opened.mode in ("RGBA", "LA", "PA") else None
        picture = _pixels(opened)
    opened.close()  # leaving it closes the file alone; its pixels are a hundred megabytes for every 25 million
    del opened
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
    restoration = solve(picture, sight, least_score=order.least_score, in_place=True)
    _give_back_memory()
    report |= {"removed": restoration.refused is None, "reason": restoration.refused,
               "confidence": restoration.confidence, "computed": restoration.inverted,
               "invented": restoration.filled}  # fmt: skip
    if restoration.refused is None:
        _save(_image(restoration.picture), transparency, order.result, kind, info)
    return report


def _give_back_memory() -> None:
    """What the network's threads have freed stays with the process otherwise, beside a copy of the whole picture."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)


def _pixels(image: Any) -> Any:
    """The picture as RGB of 8 bits, taken over in strips: Pillow's copy and ours are all that is held."""
    import numpy as np

    picture = np.empty((image.height, image.width, 3), np.uint8)
    deep = image.mode.startswith("I")
    for top in range(0, image.height, _STRIP):
        strip = image.crop((0, top, image.width, min(top + _STRIP, image.height)))
        if deep:  # 16 bits of grey
            picture[top : top + _STRIP] = (np.asarray(strip).astype(np.int64) >> 8).clip(0, 255)[..., None]
        else:
            picture[top : top + _STRIP] = np.asarray(strip.convert("RGB"))
    return picture


def _image(picture: Any) -> Any:
    from PIL import Image

    image = Image.new("RGB", (picture.shape[1], picture.shape[0]))
    for top in range(0, image.height, _STRIP):
        image.paste(Image.fromarray(picture[top : top + _STRIP]), (0, top))
    return image


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
