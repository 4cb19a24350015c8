"""How far removals are: a line or a bar for the file at work, and one for all files."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from headrace.cli.output import err, progress, say
from headrace.cli.signals import ending_in_order
from headrace.visible import make_visible

OnProgress = Callable[[int], object]


class Bars:
    """A bar for the file at work and one for all; where they cannot be written over, a line for each file."""

    def __init__(self, bar: Any | None, count: int) -> None:
        self._bar, self._count = bar, count
        self._one = self._all = None
        if bar is not None:
            self._one = bar.add_task("", total=100)
            self._all = bar.add_task(f"0 of {count} files", total=100 * count) if count > 1 else None
        self._done = 0

    def file(self, doing: str) -> OnProgress | None:
        bar = self._bar
        if bar is None:
            say(f"· {doing}" if self._count == 1 else f"· {min(self._done + 1, self._count)} of {self._count}: {doing}")
            return None
        bar.update(self._one, description=make_visible(doing), completed=0)

        def report(percent: int) -> None:
            bar.update(self._one, completed=percent)
            if self._all is not None:
                bar.update(self._all, completed=100 * self._done + percent)

        return report

    def finished(self, count: int) -> None:
        self._done = count
        if self._bar is not None and self._all is not None:
            self._bar.update(self._all, completed=100 * count, description=f"{count} of {self._count} files")


@contextmanager
def progress_bars(count: int) -> Iterator[Bars]:
    if not err.is_terminal:
        yield Bars(None, count)
        return
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}", markup=False), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
    with Progress(*columns, console=err, transient=True) as bar:
        yield Bars(bar, count)


@contextmanager
def watched(doing: str) -> Iterator[OnProgress | None]:
    """A progress line on a terminal; in a log there is one line for each file."""
    with ending_in_order(), progress(doing) as report:
        yield (lambda percent: report(f"{doing}: {percent} %")) if err.is_terminal else None
