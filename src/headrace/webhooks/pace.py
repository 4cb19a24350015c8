"""Adaptive concurrency of an endpoint: few requests at first, more while it succeeds, fewer when it fails.

So a hanging endpoint occupies one or two of a sender's requests and does not slow the others.
"""

from dataclasses import dataclass

FIRST = 2


@dataclass(slots=True)
class Pace:
    most: int
    limit: int = FIRST

    def __post_init__(self) -> None:
        self.limit = min(self.limit, self.most)

    def succeeded(self) -> None:
        self.limit = min(self.limit + 1, self.most)

    def failed(self) -> None:
        self.limit = max(1, self.limit // 2)
