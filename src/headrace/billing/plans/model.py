"""Types of plans."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

# Seeded by migration 0014: every user has it, month by month, without a subscription.
FREE_PLAN = "pln_00000000000000000000000000"


@dataclass(frozen=True, slots=True)
class PlanFacts:
    """The properties of a plan that administrators set."""

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
        """Whether it can be ordered; a free plan is granted without an order."""
        return self.is_active and self.price_cents > 0
