"""How many requests an endpoint gets at once: few at first, more while it answers well, fewer when it does not.

So one that hangs takes one or two places of a sender, whatever it is allowed, and the others do not feel it.
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
