"""Which schema of the API becomes which class of the client, and which operation which verb.

``tests/client/test_routes.py`` holds that every route has a verb or a stated reason.
"""

from collections.abc import Sequence
from typing import NamedTuple


class AnswerClass(NamedTuple):
    """A class made of the fields of one or more schemas: those of lists have fewer, those of creations more."""

    doc: str
    schemas: Sequence[str]
    base: str = "Answer"
    secret: Sequence[str] = ()
    """Fields that ``repr`` omits."""
    extra: Sequence[tuple[str, str, str, str]] = ()
    """Fields that the client sets: name, type, default, description."""


_PASSWORD = ("password", "str | None", "None", "Set only when it was just generated.")
_TTL = ("ttl_seconds", "float", "30.0", "The last TTL requested by this client.")

ANSWERS = {
    # tasks
    "Task": AnswerClass(
        "A task at the time of the answer. Lists omit payload and result.", ("TaskOut", "TaskItemOut"), "TaskState"
    ),
    "LogLine": AnswerClass("The end of an attempt, or a log line of a handler (``status`` LOG).", ("LogOut",)),
    "Step": AnswerClass("One step of one attempt.", ("StepOut",)),
    "Reason": AnswerClass(
        "One reason that prevents a run: a sentence for people, a code and facts for programs.", ("ReasonOut",)
    ),
    "Why": AnswerClass("Why a task is not running, the most important reason first.", ("WhyOut",)),
    "QueueRules": AnswerClass("The settings of a queue.", ("QueueRulesOut",)),
    "Queue": AnswerClass(
        "A queue and its counts; unless ``exact``, they are lower bounds.", ("QueueOut",), "QueueRules"
    ),
    "TaskType": AnswerClass(
        "A registered task type. ``payload_schema`` is a JSON Schema; None accepts any payload.", ("TaskTypeOut",)
    ),
    "Held": AnswerClass("A task that a worker runs.", ("HeldOut",)),
    "Worker": AnswerClass("A worker process that has not ended.", ("WorkerOut",)),
    "EventType": AnswerClass(
        "A type of event in one version; ``data_schema`` is the JSON Schema of its data.", ("EventTypeOut",)
    ),
    "BulkAction": AnswerClass(
        "An action on many rows. ``task_id`` is the task that carries it out: wait for it, or cancel it to stop.",
        ("BulkOut",),
    ),
    # schedules and locks
    "Schedule": AnswerClass(
        "A schedule and its counts at the time of the answer. Lists omit ``warnings``.",
        ("ScheduleOut", "ScheduleItemOut", "DisabledOut"),
    ),
    "Statistics": AnswerClass("Statistics of a schedule and durations of its last runs.", ("ScheduleStatisticsOut",)),
    "Execution": AnswerClass(
        "A run of a schedule; each attempt is a run. Lists omit result and stack.",
        ("ExecutionOut", "ExecutionItemOut"),
        "ExecutionState",
    ),
    "RunWhy": AnswerClass("Why a run is not running, the most important reason first.", ("RunWhyOut",)),
    "Lock": AnswerClass(
        "One holding of a lock. Only its holder has the ``token``.",
        ("LockOut", "GrantOut"),
        secret=("token",),
        extra=(_TTL,),
    ),
    # accounts
    "User": AnswerClass(
        "An account. ``password`` is set only when it was just generated.",
        ("UserOut", "OwnUserOut"),
        secret=("password",),
        extra=(_PASSWORD,),
    ),
    "Me": AnswerClass(
        "The caller and its credentials: an API key has ``scopes``, a session has all rights of its user.",
        ("MeOut",),
        secret=("csrf_token",),
    ),
    "ApiKey": AnswerClass(
        "An API key. ``key`` is set only when it was just created.", ("ApiKeyOut", "ApiKeyMadeOut"), secret=("key",)
    ),
    "Session": AnswerClass("An active session of a browser.", ("SessionOut",)),
    "Deletion": AnswerClass("The deletion of an account.", ("DeletionOut",)),
    # files and removals
    "File": AnswerClass("A stored file and its media properties.", ("AssetOut",)),
    "Upload": AnswerClass("A multipart upload; ``stored`` are the uploaded parts.", ("UploadOut", "UploadItemOut")),
    "Link": AnswerClass("A link with which anyone can read the file.", ("LinkOut",), secret=("url",)),
    "StorageUse": AnswerClass("A user's storage use and limit.", ("StorageUseOut",)),
    "ResultFile": AnswerClass("The result file of a task.", ("ResultOut",)),
    "Quote": AnswerClass("The present price.", ("QuoteOut",)),
    "Candidate": AnswerClass("A candidate for a watermark.", ("CandidateOut",)),
    "Removal": AnswerClass(
        "An order and its task at the time of the answer. Lists omit the candidates.",
        ("RemovalOut", "RemovalItemOut"),
        "RemovalState",
    ),
    # money
    "Plan": AnswerClass("A plan: a price for a number of units each month.", ("PlanOut",)),
    "Subscription": AnswerClass("A subscription at the time of the answer.", ("SubscriptionOut",)),
    "Order": AnswerClass(
        "An order: ``code_url`` is the content of the QR code, ``jsapi`` the parameters for a mini-program.",
        ("OrderOut",),
    ),
    "Ordered": AnswerClass("A subscription and its unpaid order.", ("OrderedPlanOut",)),
    "Entitlement": AnswerClass("Units that may be used in a period.", ("EntitlementOut",)),
    "LedgerEntry": AnswerClass(
        "A ledger entry: units granted, held for a task, used by it or released.", ("EntryOut",)
    ),
    "Balance": AnswerClass("The units that can be used now.", ("BalanceOut",)),
    "UsedDay": AnswerClass("Units charged and released on one day (UTC).", ("UsedDayOut",)),
    # events
    "Endpoint": AnswerClass(
        "A webhook endpoint. ``secret`` is set only when it was just generated.",
        ("EndpointOut", "EndpointMadeOut"),
        secret=("secret",),
    ),
    "Delivery": AnswerClass("One attempt. Lists omit request and response.", ("DeliveryOut", "DeliveryItemOut")),
    "EndpointStatistics": AnswerClass("Statistics of an endpoint since a time.", ("EndpointStatisticsOut",)),
    "Notification": AnswerClass("A notification.", ("NotificationOut",)),
    # operators
    "StatisticsStep": AnswerClass("Statistics of one interval.", ("PointOut",)),
    "Overview": AnswerClass("Queues, workers and findings at a glance.", ("OverviewOut",)),
    "Capabilities": AnswerClass("What this installation offers the caller.", ("CapabilitiesOut",)),
    "AuditEvent": AnswerClass("An event of the audit trail.", ("EventOut",)),
    "AuditProof": AnswerClass("A proof that an event was sealed, to be checked without the database.", ("ProofOut",)),
    "AuditVerification": AnswerClass("The result of verifying the audit trail.", ("VerifiedOut",)),
    "LedgerVerification": AnswerClass("The result of verifying the whole ledger.", ("VerificationOut",)),
    "Config": AnswerClass("A value that is set in one scope.", ("ConfigOut",)),
    "ConfigKey": AnswerClass("A key that can be set, with its default.", ("ConfigKeyOut",)),
    "Setting": AnswerClass("A setting of the API process that answers.", ("SettingOut",)),
    "OutboxState": AnswerClass("The state of the outbox. Counts end at 100,000.", ("OutboxOut",)),
    "OutboxEvent": AnswerClass("An event in the outbox.", ("OutboxEventOut",)),
    "Archive": AnswerClass("A month that has left its table, or is leaving it.", ("ArchiveOut",)),
    "Partition": AnswerClass("A month of a table that is kept by months.", ("PartitionOut",)),
    "MonthsMade": AnswerClass("The partitions that were made, and the problems.", ("MadeOut",)),
    "Risk": AnswerClass("A known risk.", ("RiskOut",)),
    "RiskBoard": AnswerClass("The open risks by category and severity.", ("BoardOut",)),
    "RiskTrace": AnswerClass("An audit event that a risk refers to.", ("TraceOut",)),
}


class Group(NamedTuple):
    """A class of verbs that follow from the description alone: each verb with its operation."""

    doc: str
    verbs: dict[str, str]


GROUPS = {
    "Sessions": Group(
        "The caller's sessions in browsers.",
        {
            "get": "get_session",
            "revoke": "revoke_session",
            "revoke_others": "revoke_other_sessions",
            "list": "list_sessions",
        },
    ),
    "Deletions": Group(
        "Deletions of accounts, for administrators.",
        {"order": "delete_user", "get": "get_user_deletion", "undo": "keep_user", "list": "list_deletions"},
    ),
    "Plans": Group(
        "Plans for sale; ``all`` and the changes are for administrators.",
        {
            "all": "list_plans",
            "create": "create_plan",
            "get": "get_plan",
            "update": "change_plan",
            "delete": "delete_plan",
            "list": "list_offered_plans",
        },
    ),
    "Ledger": Group(
        "Proof of the ledger, for administrators.", {"verify": "verify_ledger", "verification": "get_verification"}
    ),
    "Audit": Group(
        "The audit trail.",
        {
            "get": "get_audit_event",
            "prove": "prove_audit_event",
            "verify": "verify_audit_trail",
            "list": "list_audit_events",
        },
    ),
    "Configs": Group(
        "Values that change at run time, for administrators.",
        {
            "keys": "list_config_keys",
            "get": "get_config",
            "set": "set_config",
            "unset": "unset_config",
            "list": "list_configs",
        },
    ),
    "Settings": Group("The settings in force, for administrators.", {"list": "list_settings"}),
    "Outbox": Group(
        "Events on their way to receivers, for administrators.",
        {
            "state": "get_outbox",
            "get": "get_event",
            "revive": "revive_event",
            "revive_all": "revive_all",
            "list": "list_events",
        },
    ),
    "Archives": Group("Archived months, for administrators.", {"get": "get_archive", "list": "list_archives"}),
    "Partitions": Group(
        "Months of tables, for administrators.", {"make_ahead": "make_months_ahead", "list": "list_partitions"}
    ),
    "Risks": Group(
        "Known risks, for administrators.",
        {
            "create": "create_risk",
            "get": "get_risk",
            "update": "change_risk",
            "delete": "delete_risk",
            "board": "get_risk_board",
            "traces": "list_risk_traces",
            "list": "list_risks",
        },
    ),
}

# POST without an idempotency key, and yet harmless to repeat.
REPEATABLE = frozenset(
    {"delete_user", "make_months_ahead", "revive_all", "revive_event", "verify_audit_trail", "verify_ledger"}
)
