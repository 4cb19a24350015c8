"""What a machine that takes marks off needs, and what one file may use of it."""

import importlib.util
from dataclasses import dataclass

from headrace.tasks.execution import ProcessLimits

_LIBRARIES = ("av", "cv2", "lxml", "numpy", "onnxruntime", "PIL", "pikepdf", "pypdfium2")


@dataclass(frozen=True, slots=True)
class RemoverConfig:
    """How many files one worker process works on at once, and what each may use for one step."""

    processes: int = 1
    memory_bytes: int = 5 * 1024**3
    cpu_seconds: int = 3600
    wall_seconds: int = 3600
    look_seconds: float = 600  # for a free detection, behind which others wait
    file_bytes: int = 8 * 1024**3
    spare: int = 1  # children that are kept ready for the next file: each serves one alone

    @property
    def limits(self) -> ProcessLimits:
        return ProcessLimits(
            memory_bytes=self.memory_bytes,
            cpu_seconds=self.cpu_seconds,
            file_bytes=self.file_bytes,
            open_files=256,
            wall_seconds=self.wall_seconds,
        )


def is_installed() -> bool:
    """Whether this machine has what the four media need."""
    return all(importlib.util.find_spec(name) is not None for name in _LIBRARIES)
