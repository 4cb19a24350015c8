"""Where the first waiting event is known to be, so that dead rows before it are not walked over again.

Rows that were published leave dead entries in the index of what waits. Vacuum removes them, but not while a transaction
elsewhere keeps an old snapshot: then a look walks over everything that was published since. So a look that took long is
followed by looks from the first event on that it found. An event that is due before that, of a transaction that began
earlier and committed later, is found by the next look over everything: those take a twentieth of the time at the most.
"""

import time
from datetime import datetime

SLOW_S = 0.05  # a look over everything that takes longer has walked over dead rows
_REST = 20
_LONGEST_REST_S = 30.0


class Floor:
    def __init__(self) -> None:
        self._at: datetime | None = None
        self._whole_look_at = 0.0

    def choose(self) -> datetime | None:
        """Where to look from; None for the very beginning."""
        return None if time.monotonic() >= self._whole_look_at else self._at

    def looked(self, since: datetime | None, *, seconds: float, first: datetime | None) -> None:
        """Note a look, how long it took, and before when nothing is due."""
        if since is None:
            rest = min(seconds * _REST, _LONGEST_REST_S) if seconds > SLOW_S else 0.0
            self._whole_look_at = time.monotonic() + rest
            self._at = first
        elif first is not None:
            self._at = first
