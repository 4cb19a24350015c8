"""Limits of connections: how many, in which phase, and for how long.

uvicorn has one limit, on connections, and no timeout for a request's head: a few thousand clients that send half a
request line block all others. Here every connection has a phase, every phase that waits for the client has a timeout,
and at the limit the longest quiet connection is closed. Only requests under way count against the limit of requests.

This module does no I/O: ``protocol`` does, and reports phases.
"""

import errno
import os
import time
from collections import Counter, OrderedDict
from dataclasses import dataclass, replace
from datetime import timedelta
from enum import StrEnum
from functools import lru_cache
from ipaddress import ip_network
from typing import Protocol

from headrace import logs
from headrace.edge.errors import ServerBusy, TooManyConnections
from headrace.errors import HeadraceError
from headrace.web.address import Network, is_in, parse

log = logs.get(__name__)


class Phase(StrEnum):
    """The state of a connection. In all phases except WORK we wait for the client."""

    HEAD = "head"  # opened, or in the middle of a request's head
    BODY = "body"  # the head is here, the body is not
    WORK = "work"  # the server handles the request
    STALLED = "stalled"  # the client does not read what we write
    IDLE = "idle"  # answered, and kept open for the next request
    CLOSING = "closing"  # the answer is complete; the client has not closed yet


_QUIET = (Phase.HEAD, Phase.IDLE, Phase.CLOSING)  # closing these loses nothing
_UNDER_WAY = (Phase.BODY, Phase.WORK, Phase.STALLED)


class Reason(StrEnum):
    """Why the server closed or refused a connection."""

    HEAD_TIMEOUT = "head_timeout"
    IDLE_TIMEOUT = "idle_timeout"
    NOT_READING = "not_reading"
    NOT_CLOSING = "not_closing"
    MADE_ROOM = "made_room"  # the longest waiting one was closed for a new one
    ADDRESS_FULL = "address_full"
    FULL = "full"
    REQUESTS_FULL = "requests_full"
    OUT_OF_FILES = "out_of_files"


# Frequent reasons are counted, but not logged.
_ORDINARY = frozenset({Reason.IDLE_TIMEOUT, Reason.NOT_CLOSING})


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    """Limits of connections and requests of one process, and timeouts of clients."""

    connections: int = 10_000
    per_address: int = 256
    requests: int = 2_000
    head_timeout: timedelta = timedelta(seconds=10)
    keep_alive: timedelta = timedelta(seconds=15)
    stalled_for: timedelta = timedelta(seconds=30)
    closing_for: timedelta = timedelta(seconds=5)
    trusted_proxies: tuple[Network, ...] = ()

    def within(self, descriptors: int) -> "ConnectionLimits":
        """The limits for a process with this number of file descriptors."""
        return replace(self, connections=max(_MIN_CONNECTIONS, min(self.connections, descriptors)))


_MIN_CONNECTIONS = 16
_PROBES = frozenset({"/healthz", "/readyz"})
# A request that waits less than this for its client is not closed for another.
_MIN_WAIT_S = 1.0
# Descriptors reserved for the database, files and children.
_SPARE_FILES = 8
_LOG_EVERY_S = 10.0
_MAX_CLOSED_PER_TURN = 5  # connections closed in one turn of the loop


class Connection(Protocol):
    """The interface of a connection."""

    address: str | None  # None if its connections are not counted
    phase: Phase
    since: float

    def expire(self) -> None:
        """Close it after a timeout of its phase, with an answer if possible."""

    def drop(self) -> None:
        """Close at once."""


class Connections:
    """The connections of one process."""

    def __init__(self, limits: ConnectionLimits) -> None:
        self._limits = limits
        self._room = limits.connections
        # A share is reserved for waiting connections, so that one can always be closed for a new one.
        self._requests = min(limits.requests, limits.connections * 3 // 4)
        self._for_probes = max(1, min(64, limits.connections // 8))
        self._timeouts = {
            Phase.HEAD: limits.head_timeout.total_seconds(),
            Phase.IDLE: limits.keep_alive.total_seconds(),
            Phase.STALLED: limits.stalled_for.total_seconds(),
            Phase.CLOSING: limits.closing_for.total_seconds(),
        }
        # In the order of entering the phase: the first expires first.
        self._phases: dict[Phase, OrderedDict[Connection, None]] = {phase: OrderedDict() for phase in Phase}
        self._count_of: Counter[str] = Counter()
        self._waiting_of: dict[str, OrderedDict[Connection, None]] = {}
        self.closed: Counter[Reason] = Counter()
        self._logged: Counter[Reason] = Counter()
        self._logged_at = 0.0

    def __len__(self) -> int:
        return sum(map(len, self._phases.values()))

    @property
    def period(self) -> float:
        """Seconds between calls of ``tick``: the maximum delay of a timeout."""
        return min(1.0, min(self._timeouts.values()) / 4)

    def count(self, phase: Phase) -> int:
        return len(self._phases[phase])

    def bucket_of(self, peer: str | None) -> str | None:
        """The key under which a client's connections are counted; None for proxies, which have many clients."""
        return _bucket(peer, self._limits.trusted_proxies)

    # -- opening and closing

    def open(self, connection: Connection) -> HeadraceError | None:
        """Accept a new connection in the phase HEAD, or return the refusal."""
        refusal = self._make_room(connection)
        if connection.address is not None:
            self._count_of[connection.address] += 1
        self._put(connection, Phase.HEAD if refusal is None else Phase.CLOSING)
        return refusal

    def _make_room(self, connection: Connection) -> HeadraceError | None:
        own, most = connection.address, self._limits.per_address
        if own is not None and self._count_of[own] >= most:
            # Many people may share an address: a waiting connection is closed, rather than refusing a new one.
            if (found := self._longest_quiet(own)) is not None:
                self._drop(found, Reason.MADE_ROOM)
            if self._count_of[own] >= most:
                self.closed[Reason.ADDRESS_FULL] += 1
                return TooManyConnections(retry_after=timedelta(seconds=1))
        if len(self) >= self._room:
            self._drop_quietest(Reason.MADE_ROOM)
            if len(self) >= self._room:
                self.closed[Reason.FULL] += 1
                return ServerBusy()
        return None

    def enter(self, connection: Connection, phase: Phase) -> None:
        """Change the phase of a connection. Entering the same phase again does not restart its timeout."""
        if connection.phase is not phase and connection in self._phases[connection.phase]:
            self._take(connection)
            self._put(connection, phase)

    def forget(self, connection: Connection) -> None:
        """Remove a closed connection. Idempotent."""
        if connection not in self._phases[connection.phase]:
            return
        self._take(connection)
        if (own := connection.address) is not None:
            self._count_of[own] -= 1
            if not self._count_of[own]:
                del self._count_of[own]

    def admit(self, path: str) -> HeadraceError | None:
        """Admit a request with a complete head, which already counts as under way; returns the refusal otherwise."""
        most = self._requests + (self._for_probes if path in _PROBES else 0)
        if self._under_way() <= most or self._drop_waiting():
            return None
        self.closed[Reason.REQUESTS_FULL] += 1
        return ServerBusy()

    def _under_way(self) -> int:
        return sum(len(self._phases[phase]) for phase in _UNDER_WAY)

    # -- closing

    def tick(self) -> bool:
        """Close expired connections, about once a second; True if more remain: thousands may expire together, and one
        turn of the loop closes only a few, so that others do not wait."""
        now, ended = time.monotonic(), 0
        for phase, reason in _EXPIRES.items():
            waiting = self._phases[phase]
            while waiting and (first := next(iter(waiting))).since + self._timeouts[phase] <= now:
                if ended == _MAX_CLOSED_PER_TURN:
                    return True
                self._end(first, reason)
                ended += 1
        self._free_descriptors()
        self._tell(now)
        return False

    def _end(self, connection: Connection, reason: Reason) -> None:
        self.closed[reason] += 1
        connection.expire()
        if connection.phase is not Phase.CLOSING or reason is Reason.NOT_CLOSING:
            self.forget(connection)

    def _drop(self, connection: Connection, reason: Reason) -> None:
        self.closed[reason] += 1
        self.forget(connection)
        connection.drop()

    def _drop_quietest(self, reason: Reason) -> bool:
        """Close the longest quiet connection; False if there is none."""
        if (found := self._oldest(_QUIET)) is not None:
            self._drop(found, reason)
        return found is not None

    def _longest_quiet(self, address: str) -> Connection | None:
        """The longest quiet connection of this address; uploads and slow readers count only after a while."""
        waiting = self._waiting_of.get(address, OrderedDict())
        quiet = next((each for each in waiting if each.phase in _QUIET), None)
        return quiet or next((each for each in waiting if each.since + _MIN_WAIT_S <= time.monotonic()), None)

    def _drop_waiting(self) -> bool:
        """Close a request that waits for its client, in favour of one that does not."""
        found = self._oldest((Phase.BODY, Phase.STALLED))
        if found is None or found.since + _MIN_WAIT_S > time.monotonic():
            return False
        self._drop(found, Reason.MADE_ROOM)
        return True

    def _oldest(self, phases: tuple[Phase, ...]) -> Connection | None:
        firsts = [next(iter(self._phases[phase])) for phase in phases if self._phases[phase]]
        return min(firsts, key=lambda connection: connection.since, default=None)

    def _free_descriptors(self) -> None:
        """Close quiet connections when the process runs out of file descriptors."""
        if descriptors_left(_SPARE_FILES):
            self._room = min(self._limits.connections, self._room + _MIN_CONNECTIONS)
            return
        self._room = max(_MIN_CONNECTIONS, len(self) * 4 // 5)
        while len(self) > self._room and self._drop_quietest(Reason.OUT_OF_FILES):
            pass
        log.warning("connections.out_of_files", connections=len(self))

    def _tell(self, now: float) -> None:
        new = self.closed - self._logged
        if now < self._logged_at + _LOG_EVERY_S or not new.keys() - _ORDINARY:
            return
        self._logged, self._logged_at = self.closed.copy(), now
        log.warning("connections.closed", open=len(self), **{reason.value: number for reason, number in new.items()})

    # -- the tables

    def _put(self, connection: Connection, phase: Phase) -> None:
        connection.phase, connection.since = phase, time.monotonic()
        self._phases[phase][connection] = None
        if connection.address is not None and phase is not Phase.WORK:
            self._waiting_of.setdefault(connection.address, OrderedDict())[connection] = None

    def _take(self, connection: Connection) -> None:
        del self._phases[connection.phase][connection]
        if connection.address is not None and (waiting := self._waiting_of.get(connection.address)) is not None:
            waiting.pop(connection, None)
            if not waiting:
                del self._waiting_of[connection.address]


# Cached, because parsing an address costs as much as all other work for a new connection.
@lru_cache(maxsize=4096)
def _bucket(peer: str | None, trusted: tuple[Network, ...]) -> str | None:
    address = parse(peer or "")
    if address is None or is_in(address, trusted):
        return None
    # For IPv6 the /64, the usual size of one customer.
    return str(ip_network((address, 64), strict=False)) if address.version == 6 else str(address)


_EXPIRES = {
    Phase.HEAD: Reason.HEAD_TIMEOUT,
    Phase.IDLE: Reason.IDLE_TIMEOUT,
    Phase.STALLED: Reason.NOT_READING,
    Phase.CLOSING: Reason.NOT_CLOSING,
}


def descriptors_left(number: int) -> bool:
    """Whether this process can open this number of files now."""
    opened: list[int] = []
    try:
        opened.extend(os.open(os.devnull, os.O_RDONLY) for _ in range(number))
    except OSError as exc:
        if exc.errno not in {errno.EMFILE, errno.ENFILE}:
            raise
        return False
    finally:
        for descriptor in opened:
            os.close(descriptor)
    return True
