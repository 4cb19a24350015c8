"""Request and response bodies of plans."""

from datetime import datetime
from typing import Annotated, Any, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from headrace.billing.features import FeatureList, prices
from headrace.billing.plans.model import Plan, PlanFacts
from headrace.edge.text import Line

_AT = "2026-03-01T08:00:00Z"
_FEATURES = [{"feature": "units", "media_type": "VIDEO", "quality": "HIGH", "units": 2, "per_seconds": 10}]

Name = Annotated[Line, Field(min_length=1, max_length=64, pattern=r"\S", examples=["Pro"])]
Cents = Annotated[
    int, Field(ge=0, le=100_000_000, description="Monthly price in hundredths of the currency.", examples=[2900])
]
Currency = Annotated[str, Field(pattern="^[A-Z]{3}$", description="WeChat Pay accepts only CNY.", examples=["CNY"])]
Quota = Annotated[int, Field(ge=0, le=1_000_000_000, description="Units a month.", examples=[500])]
Order = Annotated[int, Field(ge=-1_000_000, le=1_000_000, description="Its place in the price list.")]


class _Body(BaseModel):
    model_config = ConfigDict(extra="forbid")


class PlanIn(_Body):
    name: Name
    price_cents: Cents
    currency: Currency = "CNY"
    monthly_quota: Quota
    features: Annotated[FeatureList, Field(examples=[_FEATURES])] = []
    is_active: Annotated[bool, Field(description="Whether it is offered.")] = True
    sort_order: Order = 0

    def facts(self) -> PlanFacts:
        return PlanFacts(
            name=self.name,
            price_cents=self.price_cents,
            currency=self.currency,
            monthly_quota=self.monthly_quota,
            features_json=_stored(self.features),
            is_active=self.is_active,
            sort_order=self.sort_order,
        )


class PlanChangeIn(_Body):
    """Omitted fields stay unchanged. Earlier orders and entitlements keep the former values."""

    name: Name | None = None
    price_cents: Cents | None = None
    currency: Currency | None = None
    monthly_quota: Quota | None = None
    features: Annotated[FeatureList | None, Field(description="Replaces all features.")] = None
    is_active: bool | None = None
    sort_order: Order | None = None

    @model_validator(mode="after")
    def _something(self) -> Self:
        if not self.changes():
            raise ValueError("name at least one field to change")
        return self

    def changes(self) -> dict[str, Any]:
        values: dict[str, Any] = {name: value for name, value in self if value is not None and name != "features"}
        return values | ({} if self.features is None else {"features_json": _stored(self.features)})


class PlanOut(BaseModel):
    """A plan."""

    id: str = Field(examples=["pln_01h455vb4pex5vsknk084sn02q"])
    name: str = Field(examples=["Pro"])
    price_cents: int = Field(description="Monthly price in hundredths of the currency.", examples=[2900])
    currency: str = Field(examples=["CNY"])
    monthly_quota: int = Field(description="Units a month.", examples=[500])
    features: list[dict[str, Any]] = Field(examples=[_FEATURES])
    prices: list[dict[str, Any]] = Field(
        description="The price of each kind of file: the `units` entries of the features, with all defaults.",
        examples=[_FEATURES],
    )
    is_active: bool = Field(description="Whether it is offered.")
    sort_order: int
    version: int = Field(description="The `ETag`: send it as `If-Match` to change only this version.")
    created_at: datetime = Field(examples=[_AT])
    updated_at: datetime = Field(examples=[_AT])

    @classmethod
    def of(cls, plan: Plan) -> Self:
        own = {"features": plan.features_json, "prices": prices(plan.features_json)}
        return cls.model_validate({**{name: getattr(plan, name) for name in _SAME}, **own})


_SAME = tuple(name for name in PlanOut.model_fields if name not in ("features", "prices"))


def _stored(features: list[Any]) -> list[Any]:
    return [entry.model_dump(mode="json", exclude_none=True) for entry in features]
