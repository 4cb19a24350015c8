"""Services for routes: passed to the app once, reached through ``request.app.state.services``."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Annotated

from fastapi import Depends, Request

from headrace.access import Authenticate
from headrace.database import Database
from headrace.edge.cookies import CookieConfig
from headrace.edge.limits import LimitConfig
from headrace.edge.turns import UserTurns
from headrace.figures import Figures, Meters, no_figures
from headrace.vault import derive_key

Readiness = Callable[[], Awaitable[Sequence[str]]]
"""The reasons why this process is not ready for requests; empty when it is."""


async def always_ready() -> Sequence[str]:
    return ()


Degraded = Callable[[], Sequence[str]]
"""Parts that do not work although the process is ready; returned without I/O."""


def never_degraded() -> Sequence[str]:
    return ()


@dataclass(frozen=True, slots=True)
class Services:
    """The database, the authentication, and the configuration of the edge."""

    db: Database
    authenticate: Authenticate
    secret: bytes = field(repr=False)  # one for the deployment; only keys derived from it are used
    cookies: CookieConfig = field(default_factory=CookieConfig)
    limits: LimitConfig = field(default_factory=LimitConfig)
    idempotency_lifetime: timedelta = timedelta(hours=24)
    turns: UserTurns = field(default_factory=UserTurns)
    readiness: Readiness = always_ready
    degraded: Degraded = never_degraded
    figures: Figures = no_figures
    meters: Meters = field(default_factory=Meters)
    _keys: dict[str, bytes] = field(default_factory=dict, init=False, repr=False)

    def __post_init__(self) -> None:
        if len(self.secret) < 32:
            raise ValueError("the secret needs at least 32 bytes")

    def key(self, purpose: str) -> bytes:
        """A key of 32 bytes for one purpose: it reveals nothing about the others."""
        if (key := self._keys.get(purpose)) is None:
            key = self._keys[purpose] = derive_key(self.secret, purpose)
        return key


def services_of(request: Request) -> Services:
    services = request.app.state.services
    assert isinstance(services, Services)
    return services


async def _database(request: Request) -> Database:
    return services_of(request).db


Db = Annotated[Database, Depends(_database)]
"""The database, for routes to open their transactions on."""
