"""Keeps the clone's own data out of the tests: its `.headrace`, its `headrace.toml`, its shell's settings and profiles;
and the logging that one test configures out of the next.

`make up` and `make test` share a folder. A test that read what `make up` left there would pass or fail by what its
reader did before, and one that wrote there would change the developer's data.
"""

import itertools
import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import structlog

from headrace import logs

# For the tests themselves: which server they use, which set-up they run in.
_KEPT_PREFIXES = ("HEADRACE_TEST_", "HEADRACE_SETUP_")
_numbers = itertools.count()


@pytest.fixture(scope="session", autouse=True)
def isolated_session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """An empty working folder without settings, for the fixtures that serve many tests."""
    with pytest.MonkeyPatch.context() as patch:
        yield _isolate(patch, tmp_path_factory.mktemp("session"))


@pytest.fixture(autouse=True)
def isolated(isolated_session: Path) -> Iterator[Path]:
    """An empty working folder without settings, for one test: its default data folder lies in there."""
    folder = isolated_session / str(next(_numbers))
    folder.mkdir()
    with pytest.MonkeyPatch.context() as patch, logging_restored():
        yield _isolate(patch, folder)


@contextmanager
def logging_restored() -> Iterator[None]:
    """Undo ``logs.configure``, which is for a whole process: its handler would go on writing to a captured stream that
    is closed with its test, from every thread that logs later."""
    root, configure = logging.getLogger(), structlog.configure
    handlers, level, configured = root.handlers[:], root.level, structlog.get_config()
    chosen, json_alone, pending = logs._chosen, logs._json_alone, logs._pending

    def uncached(**how: Any) -> None:
        """A logger first used in here must not keep this configuration."""
        configure(**{**how, "cache_logger_on_first_use": False})

    try:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(structlog, "configure", uncached)
            yield
    finally:
        root.handlers[:] = handlers
        root.setLevel(level)
        structlog.configure(**configured)
        logs._chosen, logs._json_alone, logs._pending = chosen, json_alone, pending


def _isolate(patch: pytest.MonkeyPatch, folder: Path) -> Path:
    for name in list(os.environ):
        if name.startswith("HEADRACE_") and not name.startswith(_KEPT_PREFIXES):
            patch.delenv(name)
    patch.setenv("XDG_CONFIG_HOME", str(folder / "config"))
    patch.chdir(folder)
    return folder
