"""A detection as a file, so that what was seen need not be looked for again: on another day, on another machine.

Plain arrays and JSON, and nothing that is executed when it is read: the file may have lain where others write.
"""

import json
from dataclasses import asdict, replace
from typing import Any

import numpy as np

from headrace.removal.images.eye.model import Detection, Region

_PLANES = ("tight", "loose", "likely", "strength", "tint", "doubt", "certainty", "allowed")
_MAY_MISS = ("certainty", "allowed")


def save(detection: Detection, target: str) -> None:
    """Write it as a compressed NumPy archive; the marks that only a larger copy shows lie in it, too."""
    arrays: dict[str, Any] = {}
    facts: list[dict[str, Any]] = []
    level: Detection | None = detection
    while level is not None:
        number = len(facts)
        for name in _PLANES:
            plane = getattr(level, name)
            if plane is not None:
                arrays[f"{number}.{name}"] = plane
        facts.append(
            {
                "height": level.height,
                "width": level.width,
                "step": level.step,
                "score": level.score,
                "regions": [asdict(region) for region in level.regions],
                "repeated": level.repeated,
                "confirmed": level.confirmed,
            }
        )
        level = level.finer
    arrays["facts"] = np.frombuffer(json.dumps(facts).encode(), np.uint8)
    with open(target, "wb") as file:  # noqa: PTH123 - by a name, NumPy would add an ending
        np.savez_compressed(file, **arrays)


def load(source: str) -> Detection:
    """What ``save`` wrote; ``ValueError`` for anything else."""
    with np.load(source, allow_pickle=False) as arrays:
        detection: Detection | None = None
        for number, level in reversed([*enumerate(json.loads(arrays["facts"].tobytes()))]):
            planes: dict[str, Any] = {
                name: None if name in _MAY_MISS and f"{number}.{name}" not in arrays else arrays[f"{number}.{name}"]
                for name in _PLANES
            }
            regions = tuple(Region(**region) for region in level.pop("regions"))
            detection = replace(Detection(**level, **planes, regions=regions), finer=detection)
    if detection is None:
        raise ValueError("there is nothing in it")
    return detection
