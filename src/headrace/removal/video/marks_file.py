"""The file of detected marks, which later stages read: place, strength and colour of each. It cannot hold code."""

import json
from dataclasses import asdict, dataclass, replace
from pathlib import Path as File
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headrace.removal.errors import HintUnusable
from headrace.removal.images.views.solving import Matte
from headrace.removal.report import Box as Shown
from headrace.removal.report import Candidate
from headrace.removal.video.model import Kind
from headrace.removal.video.moving_marks import Path, window_facts, windows
from headrace.removal.video.probing import Facts
from headrace.removal.video.sampling import Box, Sample


@dataclass(frozen=True, slots=True)
class Mark:
    """A candidate with its matte, in stored pixels and 8-bit levels."""

    candidate: Candidate
    box: Box  # of a moving mark: within the window that moves with it
    matte: Matte  # of the box
    path: Path = ()  # of the window, in the samples
    window: tuple[int, int] = (0, 0)  # its height and width
    within: tuple[float, float] | None = None  # seconds; frames outside this span stay as they are
    filled: bool = False  # whether to inpaint it: computing left residue

    @property
    def inner(self) -> Box:
        """Without its surroundings."""
        rows, columns = np.flatnonzero(self.matte.loose.any(1)), np.flatnonzero(self.matte.loose.any(0))
        top, _, left, _ = self.box
        return top + int(rows[0]), top + int(rows[-1]) + 1, left + int(columns[0]), left + int(columns[-1]) + 1

    def views(self, samples: list[Sample], facts: Facts) -> tuple[list[Sample], Facts]:
        """Samples in which it is at rest, and the facts of what they show."""
        return rested(self.path, self.window, samples, facts)


def rested(path: Path, window: tuple[int, int], samples: list[Sample], facts: Facts) -> tuple[list[Sample], Facts]:
    if not path:
        return samples, facts
    return windows(samples, facts, path, *window), window_facts(facts, *window)


def save(marks: list[Mark], path: str) -> None:
    arrays: dict[str, NDArray[Any]] = {}
    for number, mark in enumerate(marks):
        matte = mark.matte
        arrays[f"alpha_{number}"] = np.rint(matte.alpha * 65535).astype(np.uint16)
        arrays[f"tint_{number}"] = matte.tint.astype(np.float16)
        arrays[f"loose_{number}"] = matte.loose
    head = [
        {
            "candidate": asdict(mark.candidate),
            "box": mark.box,
            "trust": mark.matte.trust,
            "path": mark.path,
            "window": mark.window,
            "within": mark.within,
        }
        for mark in marks
    ]
    arrays["head"] = np.frombuffer(json.dumps(head).encode(), np.uint8)
    with File(path).open("wb") as file:  # np.savez adds an ending to names
        np.savez_compressed(file, **arrays)  # type: ignore[arg-type]


def as_stored(mark: Mark) -> Mark:
    """Round the mark as its file does, so that a mark in memory and a loaded one give the same result."""
    matte = mark.matte
    alpha = np.rint(matte.alpha * 65535).astype(np.uint16).astype(np.float32) / np.float32(65535)
    return replace(mark, matte=replace(matte, alpha=alpha, tint=matte.tint.astype(np.float16).astype(np.float32)))


def load(path: str) -> list[Mark]:
    """Raises ``HintUnusable``."""
    try:
        with np.load(path, allow_pickle=False) as arrays:
            head = json.loads(arrays["head"].tobytes())
            return [_mark(entry, arrays, number) for number, entry in enumerate(head)]
    except (OSError, ValueError, KeyError, TypeError, EOFError) as exc:
        raise HintUnusable(f"{path} holds no marks of a clip: {exc}") from exc


def _mark(entry: dict[str, Any], arrays: Any, number: int) -> Mark:
    fields = entry["candidate"]
    candidate = Candidate(
        **fields
        | {
            "box": Shown(*fields["box"]),
            "kind": Kind(fields["kind"]),
            "seconds": tuple(tuple(span) for span in fields["seconds"]),
            "reasons": tuple(fields["reasons"]),
            "pages": (),
        }
    )
    matte = Matte(
        arrays[f"alpha_{number}"].astype(np.float32) / np.float32(65535),
        arrays[f"tint_{number}"].astype(np.float32),
        arrays[f"loose_{number}"].astype(np.bool_),
        float(entry["trust"]),
    )
    top, bottom, left, right = entry["box"]
    path = tuple((float(seconds), int(down), int(across)) for seconds, down, across in entry["path"])
    height, width = entry["window"]
    within = None if entry["within"] is None else (float(entry["within"][0]), float(entry["within"][1]))
    return Mark(candidate, (top, bottom, left, right), matte, path, (height, width), within)
