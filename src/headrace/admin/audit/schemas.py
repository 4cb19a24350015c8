"""The trail as the API shows it."""

from datetime import date, datetime
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field

from headrace.audit import Action, ResourceType
from headrace.audit.events import Event
from headrace.audit.exporting import as_json
from headrace.audit.findings import Flaw
from headrace.audit.verifying import Verified

EVENT_ID = "aud_01h455vb4pex5vsknk084sn02q"


class ResourceOut(BaseModel):
    type: ResourceType
    identifier: str
    data: dict[str, str] = {}


class PrincipalOut(BaseModel):
    uid: str
    username: str = ""
    type: Literal["user", "service", "anonymous"]


class DiffOut(BaseModel):
    """The two sides of a change, each JSON as text of at most 64 KB."""

    old_object: str | None = None
    new_object: str | None = None
    old_object_truncated: bool = False
    new_object_truncated: bool = False
    truncated_fields: list[str] = Field(default=[], description="Truncated fields, the longest values first.")
    old_object_sha256: str | None = Field(default=None, description="Of the whole JSON, when it was cut.")
    new_object_sha256: str | None = None


class EventOut(BaseModel):
    id: str = Field(examples=[EVENT_ID])
    timestamp: int = Field(description="Unix milliseconds.")
    action: Action
    resource_type: ResourceType
    resource: ResourceOut
    user: PrincipalOut
    actor_type: Literal["USER", "ADMIN", "SYSTEM"]
    space_path: str | None
    diff_object: DiffOut | None
    client_ip: str | None
    user_agent: str | None
    request_method: str | None
    request_id: str | None
    trace_id: str | None
    data: dict[str, str] | None
    created_at: datetime
    seq: int = Field(description="The order of sealing.")

    @classmethod
    def of(cls, event: Event) -> Self:
        return cls.model_validate(as_json(event))


class SealOut(BaseModel):
    """A link of the chain: a Merkle root over the events of one month with `after_seq` < `seq` ≤ `last_seq`."""

    number: int
    month: date
    after_seq: int
    last_seq: int
    events: int
    root: str
    previous: str
    sealed_at: int = Field(description="Microseconds since 1970.")
    chain: str = Field(description="SHA-256 over all of the above.")
    signed_by: str | None = Field(description="The Ed25519 key, in hex.")
    signature: str | None


class ProofOut(BaseModel):
    """That an event was sealed, without the database: `examples/check_proof.py` checks it."""

    format: str
    event: str = Field(description="The event's canonical text; its SHA-256 after a zero byte is the leaf.")
    path: list[tuple[Literal["left", "right"], str]] = Field(description="Neighbours on the way to the root.")
    seal: SealOut

    @classmethod
    def of(cls, proof: dict[str, Any]) -> Self:
        return cls.model_validate(proof)


class VerifyIn(BaseModel):
    model_config = ConfigDict(extra="forbid")

    month: Annotated[
        str | None, Field(pattern=r"^(19|20)\d\d-(0[1-9]|1[0-2])$", description="Only its events: `2026-03`.")
    ] = None

    whole: Annotated[
        bool,
        Field(description="From the first event on. By default it continues where the last verification ended."),
    ] = False

    @property
    def first_day(self) -> date | None:
        return None if self.month is None else date.fromisoformat(f"{self.month}-01")


class VerifiedOut(BaseModel):
    """The compared values, and those that did not fit."""

    ok: bool
    events: int = Field(description="That are as they were sealed.")
    seals: int
    unsealed: int = Field(description="Too new to be bound to anything yet.")
    signed_up_to: int = Field(description="The number of the last seal with a signature that holds.")
    heads: int = Field(description="Heads of the trail that are kept outside the database, and were compared.")
    numbers_without_event: int = Field(
        description="Given out after the last event and at none: rolled back, or removed."
    )
    not_looked_at: list[date] = Field(description="Months that have left the database.")
    continued_from: int = Field(description="The seal where the last verification ended; 0 if it began at the first.")
    sampled: int = Field(description="Earlier seals, chosen at random, that were recomputed as well.")
    whole_at: datetime | None = Field(description="When the trail was last verified from its first event on.")
    flaw: Flaw | None = Field(description="What kind of thing does not fit; null if everything does.")
    message: str | None = Field(description="The first thing that does not fit, in words.")

    @classmethod
    def of(cls, verified: Verified) -> Self:
        return cls(
            ok=verified.finding is None,
            events=verified.events,
            seals=verified.seals,
            unsealed=verified.unsealed,
            signed_up_to=verified.signed_up_to,
            heads=verified.heads,
            numbers_without_event=verified.numbers_without_event,
            not_looked_at=list(verified.not_looked_at),
            continued_from=verified.continued_from,
            sampled=verified.sampled,
            whole_at=verified.whole_at,
            flaw=verified.finding.flaw if verified.finding else None,
            message=verified.finding.message if verified.finding else None,
        )
