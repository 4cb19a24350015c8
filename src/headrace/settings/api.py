"""The HTTP server, its limits, and its trusted proxies."""

from datetime import timedelta
from typing import Annotated, ClassVar

from pydantic import ByteSize, Field, HttpUrl, PositiveInt

from headrace.settings.kinds import Duration, Group, Networks, Port, Words, setting


class ApiSettings(Group):
    title: ClassVar[str] = "API"

    api_host: str = setting("The address to listen on; `0.0.0.0` or `::` for every one.", "127.0.0.1")
    api_port: Port = setting("The port to listen on.", 8080)
    api_public_url: HttpUrl | None = setting(
        "The public URL of the API behind a proxy: `https://…`. Cookies become Secure with https.",
        None,
    )
    api_trusted_proxies: Networks = setting(
        "Networks of your own proxies, separated by commas (`10.0.0.0/8,::1/128`). Only they are trusted about a "
        "client's address, and only the rightmost hop that is not one of them.",
        (),
    )
    api_cors_origins: Words = setting(
        "Other origins of browser applications that may call the API, separated by commas. None by default.",
        (),
    )
    api_body_limit: ByteSize = setting("The largest request body, for requests that do not upload a file.", "1MiB")
    api_head_timeout: Duration = setting(
        "How long a client may take to send the head of a request: the first counts from when the connection was "
        "opened, each later one from its first byte. Sending slowly does not extend it.",
        timedelta(seconds=10),
    )
    api_keep_alive_timeout: Duration = setting(
        "How long an idle connection is kept open. Behind a proxy that reuses connections, longer than "
        "the proxy keeps them.",
        timedelta(seconds=15),
    )
    api_max_requests: PositiveInt = setting(
        "Concurrent requests of one process; more get 503. `/healthz` and `/readyz` have some capacity of their own.",
        2_000,
    )
    api_max_connections: Annotated[int, Field(ge=16)] = setting(
        "Connections of one process, fewer if it may not have that many files open. When all are taken, the one that "
        "has been quiet for longest is closed for a new one.",
        10_000,
    )
    api_max_connections_per_address: PositiveInt = setting(
        "Connections from one address (of IPv6, from one /64); the networks of `HEADRACE_API_TRUSTED_PROXIES` are "
        "excepted. One more closes the longest waiting one, or gets 429 while the server works "
        "for all of them.",
        256,
    )
    api_shutdown_timeout: Duration = setting(
        "How long running requests may take to end when the API is stopped.", timedelta(seconds=10)
    )
    api_rate_limit: PositiveInt = setting(
        "Average requests per minute of one user, or of one unauthenticated address.", 600
    )
    api_rate_burst: PositiveInt = setting("The burst of requests above the average rate.", 120)
    idempotency_lifetime: Duration = setting(
        "How long the answer to a request with an `Idempotency-Key` is stored.", timedelta(hours=24)
    )
