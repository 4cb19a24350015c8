"""Types of audit events."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import NewType

from headrace import ids

EventId = NewType("EventId", str)


class Action(StrEnum):
    """The action. Kept in step with headrace.is_audit_event, which the trail's CHECK calls."""

    CREATED = "created"
    UPDATED = "updated"
    DELETED = "deleted"
    READ = "read"  # of secrets and other sensitive data only
    ENABLED = "enabled"
    DISABLED = "disabled"
    BYPASSED = "bypassed"
    FORCE_PUSH = "forcePush"
    LOGIN = "login"
    LOGOUT = "logout"
    GRANTED = "granted"
    REVOKED = "revoked"


class ResourceType(StrEnum):
    """The type of the resource. Kept in step with headrace.is_audit_event: add in both places, in camelCase."""

    # document 001's seventeen
    CLUSTER = "cluster"
    POD = "pod"
    DEPLOYMENT = "deployment"
    SERVICE = "service"
    CONFIG_MAP = "configMap"
    SECRET = "secret"  # noqa: S105 - the noun
    DATABASE = "database"
    DATABASE_INSTANCE = "databaseInstance"
    DATABASE_USER = "databaseUser"
    MINIO = "minio"
    REDIS = "redis"
    MYSQL = "mysql"
    POSTGRESQL = "postgresql"
    USER = "user"
    ROLE = "role"
    INSTANCE = "instance"
    SCHEDULED_TASK = "scheduledTask"
    # the product's own
    TASK = "task"
    ASSET = "asset"
    PLAN = "plan"
    SUBSCRIPTION = "subscription"
    ENTITLEMENT = "entitlement"
    WEBHOOK_ENDPOINT = "webhookEndpoint"
    WEBHOOK_DELIVERY = "webhookDelivery"
    OUTBOX_EVENT = "outboxEvent"
    NOTIFICATION = "notification"
    API_KEY = "apiKey"
    SESSION = "session"
    SYSTEM_CONFIG = "systemConfig"
    TECH_RISK = "techRisk"
    QUEUE = "queue"
    WORKER = "worker"
    LOCK = "lock"
    EXECUTION = "execution"
    AUDIT_TRAIL = "auditTrail"
    ARCHIVE = "archive"
    PARTITION = "partition"
    ACCOUNT = "account"
    PAYMENT = "payment"
    LEDGER = "ledger"


# Types of this product's own events. The trail accepts all of the above, for imported events.
OWN_RESOURCE_TYPES = (
    ResourceType.USER,
    ResourceType.ACCOUNT,
    ResourceType.SESSION,
    ResourceType.API_KEY,
    ResourceType.TASK,
    ResourceType.SCHEDULED_TASK,
    ResourceType.EXECUTION,
    ResourceType.QUEUE,
    ResourceType.WORKER,
    ResourceType.LOCK,
    ResourceType.ASSET,
    ResourceType.PLAN,
    ResourceType.SUBSCRIPTION,
    ResourceType.ENTITLEMENT,
    ResourceType.PAYMENT,
    ResourceType.LEDGER,
    ResourceType.WEBHOOK_ENDPOINT,
    ResourceType.WEBHOOK_DELIVERY,
    ResourceType.OUTBOX_EVENT,
    ResourceType.NOTIFICATION,
    ResourceType.SYSTEM_CONFIG,
    ResourceType.TECH_RISK,
    ResourceType.AUDIT_TRAIL,
    ResourceType.ARCHIVE,
    ResourceType.PARTITION,
    ResourceType.DATABASE,
    ResourceType.DATABASE_USER,
)


class PrincipalType(StrEnum):
    USER = "user"
    SERVICE = "service"
    ANONYMOUS = "anonymous"


class ActorType(StrEnum):
    """The capacity in which a principal acted, by document 002."""

    USER = "USER"
    ADMIN = "ADMIN"
    SYSTEM = "SYSTEM"


@dataclass(frozen=True, slots=True)
class Principal:
    uid: str
    username: str
    type: PrincipalType


ANONYMOUS = Principal("anonymous", "", PrincipalType.ANONYMOUS)
SYSTEM = Principal(ids.SYSTEM_USER, "system", PrincipalType.SERVICE)


@dataclass(frozen=True, slots=True)
class Who:
    """The actor and the origin of a request: built once at the edge, passed to every verb that changes data."""

    principal: Principal
    actor_type: ActorType
    client_ip: str | None = None
    user_agent: str | None = None
    request_method: str | None = None
    request_id: str | None = None
    trace_id: str | None = None

    @classmethod
    def system(cls, *, trace_id: str | None = None) -> "Who":
        """The product itself, acting without a request."""
        return cls(SYSTEM, ActorType.SYSTEM, trace_id=trace_id)

    def acting_as(self, principal: Principal, actor_type: ActorType = ActorType.USER) -> "Who":
        """The same request with its authenticated principal."""
        return replace(self, principal=principal, actor_type=actor_type)


@dataclass(frozen=True, slots=True)
class Resource:
    """The resource of an event. ``data`` holds what identifies it to a reader after its deletion: a name, a title.

    ``space_path`` is its path from the top down, if it belongs to a parent: a task in
    ``queue/type``, a run in ``schedule/execution``. Anything else has none.
    """

    type: ResourceType
    identifier: str
    data: Mapping[str, str] = field(default_factory=dict)
    space_path: str | None = None

    def __post_init__(self) -> None:
        if not self.identifier:
            raise ValueError(f"an audited {self.type} needs an identifier")
