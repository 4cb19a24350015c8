"""Limits the bodies that one user, or one address, may send at the same time.

A request counts as running while its body arrives: two thousand endless bodies would use up a process's requests.
"""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

from headrace.edge.errors import TooManyOpenBodies
from headrace.edge.limits import bucket_of


class OpenBodies:
    """The bodies that this process is receiving."""

    def __init__(self, *, per_user: int, per_address: int) -> None:
        self._per_user = per_user
        self._per_address = per_address
        self._open: Counter[str] = Counter()

    @contextmanager
    def hold(self, *, user: str | None, address: str | None) -> Iterator[None]:
        """Count one body of a user or credential and of an address; ``TooManyOpenBodies`` above a limit."""
        limits: dict[str, int] = {}
        if user is not None:
            limits[bucket_of(user_id=user, client_ip=None)] = self._per_user
        if address is not None:
            limits[bucket_of(user_id=None, client_ip=address)] = self._per_address
        if any(self._open[key] >= limit for key, limit in limits.items()):
            raise TooManyOpenBodies(retry_after=timedelta(seconds=2))
        self._open.update(limits.keys())
        try:
            yield
        finally:
            self._open.subtract(limits.keys())
            for key in limits:
                if self._open[key] == 0:
                    del self._open[key]
