"""Remembers the first waiting event, so that scans skip the dead rows before it.

Published rows leave dead entries in the index of waiting events. Vacuum removes them, but not while another transaction
keeps an old snapshot: then a scan reads all entries published since. So after a slow full scan, the next scans start at
the first event that it found. An event that is due before it, of a transaction that began earlier and committed later,
is found by the next full scan; full scans take at most a twentieth of the time.
"""

import time
from datetime import datetime

SLOW_S = 0.05  # a full scan that takes longer has read dead entries
_REST_FACTOR = 20
_MAX_REST_S = 30.0


class Floor:
    def __init__(self) -> None:
        self._at: datetime | None = None
        self._next_full_scan_at = 0.0

    def choose(self) -> datetime | None:
        """Where to start the scan; None for a full scan."""
        return None if time.monotonic() >= self._next_full_scan_at else self._at

    def record_scan(self, since: datetime | None, *, seconds: float, first: datetime | None) -> None:
        """Record a scan: its start, its duration, and the first due time it found."""
        if since is None:
            rest = min(seconds * _REST_FACTOR, _MAX_REST_S) if seconds > SLOW_S else 0.0
            self._next_full_scan_at = time.monotonic() + rest
            self._at = first
        elif first is not None:
            self._at = first
