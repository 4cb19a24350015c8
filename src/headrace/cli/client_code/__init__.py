"""The generated part of ``headrace.client``: answer classes, the operators' verbs and the client without an event loop.

``make docs`` writes it from the API description and from the client's source; ``make check`` fails when it is stale.
"""

from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from headrace.assembly import description
from headrace.cli.client_code import answers, twin, verbs
from headrace.cli.client_code.source import formatted

CLIENT = Path("src/headrace/client")


def files() -> dict[Path, Callable[[], str]]:
    """Each generated file and the function that renders it."""

    @cache
    def described() -> Mapping[str, Any]:
        return description.whole()

    @cache
    def operators() -> str:
        return formatted(verbs.render(described()))

    return {
        CLIENT / "generated/answers.py": lambda: formatted(answers.render(described()["components"]["schemas"])),
        CLIENT / "generated/operators.py": operators,
        CLIENT / "generated/synchronous.py": lambda: formatted(twin.render(CLIENT, operators())),
    }
