"""A plan as it is stored."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

# Seeded by migration 0014: everybody has it, month by month, without subscribing.
FREE_PLAN = "pln_00000000000000000000000000"


@dataclass(frozen=True, slots=True)
class PlanFacts:
    """What an administrator says of a plan."""

    name: str
    price_cents: int
    currency: str
    monthly_quota: int
    features_json: list[Any]
    is_active: bool
    sort_order: int


@dataclass(frozen=True, slots=True)
class Plan(PlanFacts):
    """A row of plans."""

    id: str
    version: int
    created_at: datetime
    updated_at: datetime

    @property
    def is_for_sale(self) -> bool:
        """What costs nothing is nothing to buy: the free plan comes by itself."""
        return self.is_active and self.price_cents > 0
