"""What keeps a deployment healthy over the years."""

from headrace.operations.housekeeping import Housekeeping, Kept

__all__ = ["Housekeeping", "Kept"]
