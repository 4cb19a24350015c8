"""What a person sees in a terminal, where a moving line says what is being done."""

import contextlib
import os
import pty
import select
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn

import pytest

from headrace.cli import output
from headrace.database_errors import DatabaseUnavailable
from tests.cli.conftest import Place
from tests.e2e.program import HEADRACE, environment, is_ready


class Terminal:
    """A program with a terminal for all its streams."""

    def __init__(self, *words: str, folder: Path, settings: dict[str, str]) -> None:
        self._ours, theirs = pty.openpty()
        self.seen = ""
        self.process = subprocess.Popen(
            [*HEADRACE, *words],
            cwd=folder,
            env=environment({**settings, "TERM": "xterm", "COLUMNS": "80"}),
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            start_new_session=True,
        )
        os.close(theirs)

    def read_until(self, text: str) -> None:
        self.read(60, until=text)
        assert text in self.seen, self.seen

    def read(self, seconds: float, *, until: str | None = None) -> str:
        """What it shows in this time, or until it shows that."""
        new, deadline = "", time.monotonic() + seconds
        while (left := deadline - time.monotonic()) > 0 and not (until and until in self.seen):
            if not select.select([self._ours], [], [], left)[0]:
                break
            try:
                part = os.read(self._ours, 65_536).decode(errors="replace")
            except OSError:  # the other side is closed: the program has ended
                break
            new += part
            self.seen += part
        return new

    def type(self, text: str) -> None:
        os.write(self._ours, text.encode())

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(60)
        os.close(self._ours)


@contextlib.contextmanager
def terminal(*words: str, folder: Path, settings: dict[str, str]) -> Iterator[Terminal]:
    opened = Terminal(*words, folder=folder, settings=settings)
    try:
        yield opened
    finally:
        opened.close()


def test_a_question_stands_still(migrated: Place, tmp_path: Path) -> None:
    with terminal("migrate", "--down", folder=tmp_path, settings=migrated.settings) as screen:
        screen.read_until("Continue?")
        screen.read(0.3)
        assert screen.read(0.7) == "", "something moves over the question"
        screen.type("n\n")
        screen.read(30)
        assert screen.process.wait(60) == 1


@pytest.mark.long
def test_the_moving_line_ends_when_the_api_answers(migrated: Place, tmp_path: Path) -> None:
    with terminal("api", folder=tmp_path, settings=migrated.settings) as screen:
        screen.read_until("API at ")
        screen.read(0.5)
        url = screen.seen.partition("API at ")[2].split()[0]
        assert is_ready(url)
        screen.read(0.5)
        assert screen.read(0.7) == ""
        screen.process.send_signal(signal.SIGINT)
        screen.read(30)
        assert screen.process.wait(60) == 0


def test_an_error_that_a_group_of_loops_puts_into_groups_is_still_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    def fall() -> NoReturn:
        raise ExceptionGroup("outer", [ExceptionGroup("inner", [DatabaseUnavailable()])])

    with pytest.raises(SystemExit) as ended, output.errors_in_one_line():
        fall()
    assert ended.value.code == output.exit_code(DatabaseUnavailable())
    assert "should not have happened" not in capsys.readouterr().err
