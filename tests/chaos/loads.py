"""All kinds of load: each module adds its own to ``USES``."""

from tests.chaos import money, uploads
from tests.chaos.load import USES

__all__ = ["USES", "money", "uploads"]
