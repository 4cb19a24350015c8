"""Types of risks: trigger, mitigation and owner."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any


class Category(StrEnum):
    LICENSE = "LICENSE"
    TECHNICAL = "TECHNICAL"
    COST = "COST"
    COMPLIANCE = "COMPLIANCE"


class Severity(StrEnum):
    """From low to high."""

    LOW = "LOW"
    MEDIUM = "MEDIUM"
    HIGH = "HIGH"
    CRITICAL = "CRITICAL"


class RiskStatus(StrEnum):
    """In no order: a risk may be reopened. All except CLOSED are open."""

    OPEN = "OPEN"
    MITIGATING = "MITIGATING"
    ACCEPTED = "ACCEPTED"
    CLOSED = "CLOSED"


OPEN = (RiskStatus.OPEN, RiskStatus.MITIGATING, RiskStatus.ACCEPTED)


@dataclass(frozen=True, slots=True)
class Facts:
    """The properties of a risk that administrators set."""

    category: Category
    severity: Severity
    status: RiskStatus
    trigger_condition: str
    mitigation_plan: str
    owner: str
    refs_json: Mapping[str, Any] | None  # {"trace_ids": […], "links": […]}


@dataclass(frozen=True, slots=True)
class Risk(Facts):
    """A row of tech_risk_ledger."""

    id: int
    risk_id: str
    version: int
    created_at: datetime
    updated_at: datetime

    @property
    def trace_ids(self) -> list[str]:
        """Trace ids of its audit events. Rows written by hand may hold any JSON there."""
        found = (self.refs_json or {}).get("trace_ids")
        return [each for each in found if isinstance(each, str)] if isinstance(found, list) else []


@dataclass(frozen=True, slots=True)
class Square:
    """The number of risks of one owner, status and severity."""

    owner: str
    status: RiskStatus
    severity: Severity
    count: int


@dataclass(frozen=True, slots=True)
class Trace:
    """An audit event that a risk refers to."""

    event_id: str
    trace_id: str
    action: str
    resource_type: str
    resource_id: str
    actor_id: str
    created_at: datetime
