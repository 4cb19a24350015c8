"""How many bodies one user, and one address, may be sending at the same time.

A request is under way while its body comes: two thousand bodies that never ended took all requests of a process.
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
        """One body of a user or credential, from an address; ``TooManyOpenBodies`` where it is one
        too many."""
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
