"""The HTTP server, its limits, and what it believes of its callers."""

from datetime import timedelta
from typing import Annotated, ClassVar

from pydantic import ByteSize, Field, HttpUrl, PositiveInt

from headrace.settings.kinds import Duration, Group, Networks, Port, Words, setting


class ApiSettings(Group):
    title: ClassVar[str] = "API"

    api_host: str = setting("The address to listen on; `0.0.0.0` or `::` for every one.", "127.0.0.1")
    api_port: Port = setting("The port to listen on.", 8080)
    api_public_url: HttpUrl | None = setting(
        "How people reach the API when a proxy stands before it: `https://…`. Cookies become Secure with https.",
        None,
    )
    api_trusted_proxies: Networks = setting(
        "Networks of your own proxies, separated by commas (`10.0.0.0/8,::1/128`). Only they are believed about a "
        "client's address, and only the rightmost hop that is not one of them.",
        (),
    )
    api_cors_origins: Words = setting(
        "Origins of browser applications elsewhere that may call the API, separated by commas. None by default.",
        (),
    )
    api_body_limit: ByteSize = setting("The largest request body, for requests that do not upload a file.", "1MiB")
    api_head_timeout: Duration = setting(
        "How long a client may take to send the head of a request: the first counts from when the connection was "
        "opened, each later one from its first byte. Sending slowly does not extend it.",
        timedelta(seconds=10),
    )
    api_keep_alive_timeout: Duration = setting(
        "How long a connection is kept open for the next request. Behind a proxy that reuses connections, longer than "
        "the proxy keeps them.",
        timedelta(seconds=15),
    )
    api_max_requests: PositiveInt = setting(
        "Requests that one process has under way at once; more get 503. `/healthz` and `/readyz` have some room of "
        "their own.",
        2_000,
    )
    api_max_connections: Annotated[int, Field(ge=16)] = setting(
        "Connections of one process, fewer if it may not have that many files open. When all are taken, the one that "
        "has been quiet for longest is closed for a new one.",
        10_000,
    )
    api_max_connections_per_address: PositiveInt = setting(
        "Connections from one address (of IPv6, from one /64); the networks of `HEADRACE_API_TRUSTED_PROXIES` are "
        "excepted. One more closes the one that has kept the server waiting for longest, or gets 429 while it works "
        "for all of them.",
        256,
    )
    api_shutdown_timeout: Duration = setting(
        "How long requests may take to end when the API is stopped.", timedelta(seconds=10)
    )
    api_rate_limit: PositiveInt = setting(
        "Requests a minute that one user, or one address that is not logged in, may make on average.", 600
    )
    api_rate_burst: PositiveInt = setting("Requests that may come at once before the average counts.", 120)
    idempotency_lifetime: Duration = setting(
        "How long the answer to a request with an `Idempotency-Key` is remembered.", timedelta(hours=24)
    )
