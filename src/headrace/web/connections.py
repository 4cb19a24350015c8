"""Who may keep a connection open, and for how long.

uvicorn knows one limit, on connections, and no time by which a request's head must be there: a few thousand clients who
send half a request line switch it off for everybody. Here every connection is in a phase, each phase in which we wait
for the client ends, and when there is no room left the connection that has been quiet for longest makes way. Only
requests under way count against the limit on requests.

Nothing here reads or writes a socket: ``protocol`` does, and tells.
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
    """What a connection is doing. In all but one we wait for the client."""

    HEAD = "head"  # opened, or in the middle of a request's head
    BODY = "body"  # the head is here, the body is not
    WORK = "work"  # we are at it
    STALLED = "stalled"  # the client does not read what we write
    IDLE = "idle"  # answered, and kept open for the next request
    CLOSING = "closing"  # everything is said; the client has not hung up


_QUIET = (Phase.HEAD, Phase.IDLE, Phase.CLOSING)  # nothing is lost with these
_UNDER_WAY = (Phase.BODY, Phase.WORK, Phase.STALLED)


class Reason(StrEnum):
    """Why a connection was closed by us before its time, or not let in."""

    HEAD_TIMEOUT = "head_timeout"
    IDLE_TIMEOUT = "idle_timeout"
    NOT_READING = "not_reading"
    NOT_CLOSING = "not_closing"
    MADE_ROOM = "made_room"  # the one that kept us waiting for longest, for a newcomer
    ADDRESS_FULL = "address_full"
    FULL = "full"
    REQUESTS_FULL = "requests_full"
    OUT_OF_FILES = "out_of_files"


# What happens every day is counted, but not worth a line in the log.
_ORDINARY = frozenset({Reason.IDLE_TIMEOUT, Reason.NOT_CLOSING})


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    """How many connections and requests one process takes, and how long it waits for a client."""

    connections: int = 10_000
    per_address: int = 256
    requests: int = 2_000
    head_timeout: timedelta = timedelta(seconds=10)
    keep_alive: timedelta = timedelta(seconds=15)
    stalled_for: timedelta = timedelta(seconds=30)
    closing_for: timedelta = timedelta(seconds=5)
    trusted_proxies: tuple[Network, ...] = ()

    def within(self, descriptors: int) -> "ConnectionLimits":
        """The same for a process that may have only so many files open."""
        return replace(self, connections=max(_FEWEST, min(self.connections, descriptors)))


_FEWEST = 16
_PROBES = frozenset({"/healthz", "/readyz"})
# A request that has waited less than this for its client is not given up for another.
_PATIENCE_S = 1.0
# So many descriptors must be free, for the database, files and children.
_SPARE_FILES = 8
_LOG_EVERY_S = 10.0
_AT_ONCE = 5  # closed in one turn of the loop


class Connection(Protocol):
    """One connection, as this module sees it."""

    address: str | None  # None for those whose connections are not counted
    phase: Phase
    since: float

    def expire(self) -> None:
        """Its phase has lasted too long: say so if there is somebody to say it to, and close."""

    def drop(self) -> None:
        """Close at once."""


class Connections:
    """The connections of one process."""

    def __init__(self, limits: ConnectionLimits) -> None:
        self._limits = limits
        self._room = limits.connections
        # A share of the connections stays for those who wait, so that there is always one that can make way.
        self._requests = min(limits.requests, limits.connections * 3 // 4)
        self._for_probes = max(1, min(64, limits.connections // 8))
        self._timeouts = {
            Phase.HEAD: limits.head_timeout.total_seconds(),
            Phase.IDLE: limits.keep_alive.total_seconds(),
            Phase.STALLED: limits.stalled_for.total_seconds(),
            Phase.CLOSING: limits.closing_for.total_seconds(),
        }
        # In the order in which they came into the phase: the first is the one to end first.
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
        """How often to ``tick``, in seconds: a wait is over by so much too late at the most."""
        return min(1.0, min(self._timeouts.values()) / 4)

    def count(self, phase: Phase) -> int:
        return len(self._phases[phase])

    def bucket_of(self, peer: str | None) -> str | None:
        """Under which name a client's connections are counted; None for proxies, which bring many clients."""
        return _bucket(peer, self._limits.trusted_proxies)

    # -- coming and going

    def open(self, connection: Connection) -> HeadraceError | None:
        """Take a new connection, in the phase HEAD; or the reason why there is no room for it."""
        refusal = self._make_room(connection)
        if connection.address is not None:
            self._count_of[connection.address] += 1
        self._put(connection, Phase.HEAD if refusal is None else Phase.CLOSING)
        return refusal

    def _make_room(self, connection: Connection) -> HeadraceError | None:
        own, most = connection.address, self._limits.per_address
        if own is not None and self._count_of[own] >= most:
            # Behind one address there may be many people: who keeps us waiting makes way, not who is new.
            if (found := self._to_make_way(own)) is not None:
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
        """The connection does something else now. Again the same: its time goes on."""
        if connection.phase is not phase and connection in self._phases[connection.phase]:
            self._take(connection)
            self._put(connection, phase)

    def forget(self, connection: Connection) -> None:
        """The connection is closed; forgetting it twice does no harm."""
        if connection not in self._phases[connection.phase]:
            return
        self._take(connection)
        if (own := connection.address) is not None:
            self._count_of[own] -= 1
            if not self._count_of[own]:
                del self._count_of[own]

    def admit(self, path: str) -> HeadraceError | None:
        """Whether a request whose head is complete may be worked on. It counts as under way already."""
        most = self._requests + (self._for_probes if path in _PROBES else 0)
        if self._under_way() <= most or self._drop_waiting():
            return None
        self.closed[Reason.REQUESTS_FULL] += 1
        return ServerBusy()

    def _under_way(self) -> int:
        return sum(len(self._phases[phase]) for phase in _UNDER_WAY)

    # -- closing

    def tick(self) -> bool:
        """Close those whose time is over, once a second or so; True if there are more than one turn of the loop takes:
        thousands who came together go together, and nobody else shall wait for them."""
        now, ended = time.monotonic(), 0
        for phase, reason in _EXPIRES.items():
            waiting = self._phases[phase]
            while waiting and (first := next(iter(waiting))).since + self._timeouts[phase] <= now:
                if ended == _AT_ONCE:
                    return True
                self._end(first, reason)
                ended += 1
        self._mind_descriptors()
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
        """Close the one that has been quiet for longest; False if none is."""
        if (found := self._oldest(_QUIET)) is not None:
            self._drop(found, reason)
        return found is not None

    def _to_make_way(self, address: str) -> Connection | None:
        """Of this address the one that has been quiet for longest; an upload or a slow reader only after a while."""
        waiting = self._waiting_of.get(address, OrderedDict())
        quiet = next((each for each in waiting if each.phase in _QUIET), None)
        return quiet or next((each for each in waiting if each.since + _PATIENCE_S <= time.monotonic()), None)

    def _drop_waiting(self) -> bool:
        """Give up a request that waits for its client, for the sake of one that does not."""
        found = self._oldest((Phase.BODY, Phase.STALLED))
        if found is None or found.since + _PATIENCE_S > time.monotonic():
            return False
        self._drop(found, Reason.MADE_ROOM)
        return True

    def _oldest(self, phases: tuple[Phase, ...]) -> Connection | None:
        firsts = [next(iter(self._phases[phase])) for phase in phases if self._phases[phase]]
        return min(firsts, key=lambda connection: connection.since, default=None)

    def _mind_descriptors(self) -> None:
        """When the process runs out of descriptors, whoever has them, quiet connections give theirs back."""
        if descriptors_left(_SPARE_FILES):
            self._room = min(self._limits.connections, self._room + _FEWEST)
            return
        self._room = max(_FEWEST, len(self) * 4 // 5)
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


# Reading an address takes as long as everything else that a new connection costs here.
@lru_cache(maxsize=4096)
def _bucket(peer: str | None, trusted: tuple[Network, ...]) -> str | None:
    address = parse(peer or "")
    if address is None or is_in(address, trusted):
        return None
    # Of IPv6 the /64, which is what one customer gets.
    return str(ip_network((address, 64), strict=False)) if address.version == 6 else str(address)


_EXPIRES = {
    Phase.HEAD: Reason.HEAD_TIMEOUT,
    Phase.IDLE: Reason.IDLE_TIMEOUT,
    Phase.STALLED: Reason.NOT_READING,
    Phase.CLOSING: Reason.NOT_CLOSING,
}


def descriptors_left(number: int) -> bool:
    """Whether this process could open so many files now."""
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
