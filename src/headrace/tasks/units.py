"""What a task costs: a whole number, or a path into the payload.

It is data and no function, so that every submitter can compute it. ``headrace.units`` does the same in SQL; a test runs
made-up payloads through both.
"""

import re
from typing import Any

from headrace.tasks.errors import PayloadInvalid, UnitsRefused
from headrace.tasks.limit_keys import value_at

MOST_UNITS = 1_000_000_000
ALLOWED = 'a whole number from 1 to 999,999,999, or "payload.FIELD" with any number of further .FIELDs'

_RULE = re.compile(r"[1-9][0-9]{0,8}|payload(\.[A-Za-z_][A-Za-z0-9_-]*)+")


def is_rule(text: object) -> bool:
    return isinstance(text, str) and len(text) <= 255 and _RULE.fullmatch(text) is not None


def units(type_name: str, rule: str | None, payload: Any) -> int | None:
    """What a task with this payload costs; None for nothing."""
    if rule is None:
        return None
    _, *path = rule.split(".")
    if not path:
        return int(rule)
    value = value_at(payload, path)
    # 3.0 is a whole number, as it is in the database; True is none, though Python counts with it.
    whole = isinstance(value, int | float) and not isinstance(value, bool) and value == value // 1
    if not whole or not 1 <= value <= MOST_UNITS:
        field = ".".join(path)
        raise PayloadInvalid(
            f"The payload does not fit {type_name}: {field} is what the task costs, and so a whole number from 1 to "
            f"{MOST_UNITS:,}.",
            fields=[field],
        )
    return int(value)


def check_used(type_name: str, used: object, held: int | None) -> None:
    """Refuse what a handler cannot have used: ``held`` units are set aside for its task, None if it costs nothing."""
    check_count(used)
    if held is None:
        raise UnitsRefused(f"{type_name} costs nothing: declare units for its type before reporting their use.")
    if isinstance(used, int) and used > held:
        raise UnitsRefused(
            f"{held} units are held for this task; it cannot have used {used}. Hold more when it is submitted.",
            held=held,
            used=used,
        )


def check_count(used: object) -> None:
    """Refuse an invalid number of units: a child may send any value, True too."""
    if type(used) is not int or used < 0:
        raise UnitsRefused(f"Units are a whole number from 0 on, not {used!r}.")
