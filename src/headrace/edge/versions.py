"""The check behind ``If-Match``, for services: they know versions, and nothing of HTTP."""

from headrace.edge.errors import PreconditionFailed


def check_version(version: int, expected: int | None) -> None:
    if expected is not None and version != expected:
        raise PreconditionFailed(version=version)
