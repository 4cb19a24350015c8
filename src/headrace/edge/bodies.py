"""A smaller body limit for some routes than the general one.

Public routes must limit bodies to the size they need: validating a megabyte of unknown fields takes a second.
"""

from collections.abc import Awaitable, Callable

from fastapi import Request

from headrace.edge.errors import BodyTooLarge


def body_at_most(limit: int) -> Callable[[Request], Awaitable[None]]:
    """The dependency, for a route or a router, that refuses a longer body before it is parsed."""

    async def refuse_longer(request: Request) -> None:
        if len(await request.body()) > limit:
            raise BodyTooLarge(f"The body may have at most {limit} bytes.", limit=limit)

    return refuse_longer
