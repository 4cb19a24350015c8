"""Request and response bodies of risks."""

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Any, Self

from pydantic import BaseModel, ConfigDict, Field, HttpUrl, model_validator

from headrace.edge.text import Line, Text
from headrace.risks.model import Category, Facts, Risk, RiskStatus, Severity, Square, Trace

_AT = "2026-03-01T08:00:00Z"

RISK_ID = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$"
Prose = Annotated[Text, Field(min_length=1, max_length=10_000, pattern=r"\S")]
Owner = Annotated[Line, Field(min_length=1, max_length=64, pattern=r"\S", examples=["ada"])]
TraceId = Annotated[Text, Field(min_length=1, max_length=64, examples=["4bf92f3577b34da6a3ce929d0e0e4736"])]


class _Body(BaseModel):
    model_config = ConfigDict(extra="forbid")


class Refs(_Body):
    """Evidence of a risk."""

    trace_ids: Annotated[
        list[TraceId], Field(max_length=100, description="Trace ids of audit events: `GET …/traces` lists them.")
    ] = []
    links: Annotated[list[HttpUrl], Field(max_length=100)] = []

    def stored(self) -> dict[str, Any]:
        return self.model_dump(mode="json")


class RiskIn(_Body):
    risk_id: Annotated[
        str | None, Field(pattern=RISK_ID, description="Your own id; generated if omitted.", examples=["R-7"])
    ] = None
    category: Category
    severity: Severity
    status: RiskStatus = RiskStatus.OPEN
    trigger_condition: Annotated[Prose, Field(description="The condition that triggers it.")]
    mitigation_plan: Annotated[Prose, Field(description="The mitigation.")]
    owner: Annotated[Owner, Field(description="The responsible person.")]
    refs: Refs = Refs()

    def facts(self) -> Facts:
        return Facts(
            category=self.category,
            severity=self.severity,
            status=self.status,
            trigger_condition=self.trigger_condition,
            mitigation_plan=self.mitigation_plan,
            owner=self.owner,
            refs_json=self.refs.stored(),
        )


class RiskChangeIn(_Body):
    """Omitted fields stay unchanged."""

    category: Category | None = None
    severity: Severity | None = None
    status: RiskStatus | None = None
    trigger_condition: Prose | None = None
    mitigation_plan: Prose | None = None
    owner: Owner | None = None
    refs: Annotated[Refs | None, Field(description="Replaces all references.")] = None

    @model_validator(mode="after")
    def _something(self) -> Self:
        if not self.changes():
            raise ValueError("name at least one field to change")
        return self

    def changes(self) -> dict[str, Any]:
        given: dict[str, Any] = {name: value for name, value in self if value is not None and name != "refs"}
        return given | ({} if self.refs is None else {"refs_json": self.refs.stored()})


class RiskOut(BaseModel):
    """A risk."""

    risk_id: str = Field(examples=["R-7"])
    category: Category
    severity: Severity
    status: RiskStatus
    trigger_condition: str
    mitigation_plan: str
    owner: str = Field(examples=["ada"])
    refs: dict[str, Any] | None = Field(examples=[{"trace_ids": ["4bf92f3577b34da6a3ce929d0e0e4736"], "links": []}])
    version: int = Field(description="The `ETag`: send it as `If-Match` to change only this version.")
    created_at: datetime = Field(examples=[_AT])
    updated_at: datetime = Field(examples=[_AT])

    @classmethod
    def of(cls, risk: Risk) -> Self:
        refs = None if risk.refs_json is None else dict(risk.refs_json)
        return cls.model_validate({**{name: getattr(risk, name) for name in _SAME}, "refs": refs})


_SAME = tuple(name for name in RiskOut.model_fields if name != "refs")


class SquareOut(BaseModel):
    owner: str = Field(examples=["ada"])
    status: RiskStatus
    severity: Severity
    count: int = Field(examples=[2])


class BoardOut(BaseModel):
    """The open risks."""

    by_severity: dict[Severity, int] = Field(examples=[{"CRITICAL": 1, "HIGH": 2, "MEDIUM": 0, "LOW": 5}])
    squares: list[SquareOut] = Field(
        description="Counts by owner, status and severity, highest severity first, without zeros."
    )

    @classmethod
    def of(cls, squares: Sequence[Square]) -> Self:
        return cls(
            by_severity={
                severity: sum(each.count for each in squares if each.severity is severity)
                for severity in reversed(Severity)
            },
            squares=[SquareOut.model_validate(each, from_attributes=True) for each in squares],
        )


class TraceOut(BaseModel):
    """An audit event that a risk refers to."""

    event_id: str = Field(examples=["aud_01h455vb4pex5vsknk084sn02q"])
    trace_id: str
    action: str = Field(examples=["updated"])
    resource_type: str = Field(examples=["task"])
    resource_id: str
    actor_id: str
    created_at: datetime = Field(examples=[_AT])

    @classmethod
    def of(cls, trace: Trace) -> Self:
        return cls.model_validate(trace, from_attributes=True)
