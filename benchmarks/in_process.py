"""One removal in this process: no child, no service."""

from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

from headrace.removal import local
from headrace.removal.order import Order
from headrace.removal.report import Report


def process(order: Order, progress: Callable[[int], object] = lambda _percent: None) -> Report:
    with TemporaryDirectory(prefix="headrace-") as folder:
        return local.process(order, progress, lambda: Path(folder))
