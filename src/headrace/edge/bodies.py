"""A smaller limit for the bodies of some routes than the one that holds for all.

Where strangers can send, what a body costs must be bounded by what a body is for: a megabyte of fields that nobody
asked for takes a second to complain about.
"""

from collections.abc import Awaitable, Callable

from fastapi import Request

from headrace.edge.errors import BodyTooLarge


def body_at_most(limit: int) -> Callable[[Request], Awaitable[None]]:
    """The dependency, for a route or a router, that refuses a longer body before anyone looks at what is in it."""

    async def refuse_longer(request: Request) -> None:
        if len(await request.body()) > limit:
            raise BodyTooLarge(f"The body may have at most {limit} bytes.", limit=limit)

    return refuse_longer
