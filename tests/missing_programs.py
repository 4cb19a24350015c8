"""Programs that some tests need: why a test is skipped without one, and one line for each at the end of a run.

A skip reason reads "NAME is not installed: COMMAND"; the summary counts those.
"""

import re
from collections import Counter
from collections.abc import Iterable

import pytest

_INSTALL = {
    "axe-core": "make setup-dev",
    "Chromium": "apt-get install chromium",
    "LibreOffice": "apt-get install libreoffice-impress",
    "npm": "apt-get install nodejs npm",
    "openapi-python-client": "make setup-dev",
    "PgBouncer": "apt-get install pgbouncer",
    "psql": "apt-get install postgresql-client",
    "PyTorch": "make setup-training",
    "setpriv": "apt-get install util-linux",
    "squawk": "make setup-dev",
    "Swift": "apt-get install swift-proxy swift-account swift-container swift-object",
    "the console": "scripts/setup console",
    "the console's tools": "make setup-dev",
}
_REASON = re.compile(r"(?:Skipped: )?(.+) is not installed: (.+)")


def missing(program: str) -> str:
    """The reason for skipping a test where a program is missing."""
    return f"{program} is not installed: {_INSTALL[program]}"


def summarize(reports: Iterable[object]) -> list[str]:
    """One line for each missing program: how many tests it costs, and what installs it."""
    counts: Counter[tuple[str, str]] = Counter()
    for report in reports:
        match getattr(report, "longrepr", None):
            case (_, _, str(reason)) if found := _REASON.fullmatch(reason):
                counts[found[1], found[2]] += 1
    return [
        f"{program} is missing: {count} {'test' if count == 1 else 'tests'} skipped; install it: {command}"
        for (program, command), count in sorted(counts.items())
    ]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    for line in summarize(terminalreporter.stats.get("skipped", [])):
        terminalreporter.write_line(line, yellow=True)
