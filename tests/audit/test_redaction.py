from dataclasses import dataclass

import pytest

from headrace.audit import ResourceType
from headrace.audit.redaction import FIELDS, show, without_secrets
from headrace.database import Tx

_TABLES = {
    ResourceType.OUTBOX_EVENT: "outbox_events",
    ResourceType.USER: "users",
    ResourceType.SESSION: "sessions",
    ResourceType.API_KEY: "api_keys",
    ResourceType.TASK: "tasks",
    ResourceType.SCHEDULED_TASK: "scheduled_tasks",
    ResourceType.EXECUTION: "task_executions",
    ResourceType.QUEUE: "queues",
    ResourceType.WORKER: "workers",
    ResourceType.LOCK: "task_locks",
    ResourceType.ASSET: "assets",
    ResourceType.PLAN: "plans",
    ResourceType.SUBSCRIPTION: "subscriptions",
    ResourceType.ENTITLEMENT: "entitlements",
    ResourceType.PAYMENT: "payment_orders",
    ResourceType.WEBHOOK_ENDPOINT: "webhook_endpoints",
    ResourceType.NOTIFICATION: "notifications",
    ResourceType.SYSTEM_CONFIG: "system_configs",
    ResourceType.TECH_RISK: "tech_risk_ledger",
    ResourceType.ARCHIVE: "archives",
}
_SECRETS = (
    "password_hash token_hash key_hash wechat_openid payload data result token secret_ciphertext "
    "secret_previous_ciphertext url meta_json payload_json email mobile"
)


def test_only_allowed_fields_are_shown() -> None:
    assert show(ResourceType.USER, None, {"username": "ada", "password_hash": "$argon2id$…", "new_secret": "s"}) == (
        None,
        {"username": "ada"},
    )


def test_a_hidden_field_that_changed_is_named_without_its_value() -> None:
    old = {"username": "ada", "password_hash": "old", "wechat_openid": "same"}
    new = {"username": "ada", "password_hash": "new", "wechat_openid": "same"}
    assert show(ResourceType.USER, old, new) == ({"username": "ada"}, {"username": "ada", "password_hash": "(changed)"})


def test_a_type_without_a_list_shows_nothing() -> None:
    assert show(ResourceType.CLUSTER, None, {"name": "x"}) == (None, {})


def test_dataclasses_and_nothing_else_pass_for_rows() -> None:
    @dataclass
    class User:
        username: str
        password_hash: str

    assert show(ResourceType.USER, None, User("ada", "h"))[1] == {"username": "ada"}
    with pytest.raises(TypeError):
        show(ResourceType.USER, None, "text")


def test_no_list_allows_a_secret() -> None:
    for allowed in FIELDS.values():
        assert not allowed & set(_SECRETS.split())


def test_every_list_has_its_table_here() -> None:
    assert _TABLES.keys() == FIELDS.keys()


@pytest.mark.parametrize(("type_", "table"), _TABLES.items())
async def test_every_allowed_field_is_a_column(tx: Tx, type_: ResourceType, table: str) -> None:
    rows = await tx.fetch(
        "SELECT attname FROM pg_attribute WHERE attrelid = ('headrace.' || $1)::regclass AND attnum > 0", table
    )
    assert FIELDS[type_] <= {row["attname"] for row in rows}


def test_facts_named_like_secrets_are_hidden() -> None:
    assert without_secrets({"reason": "x", "reset_Token": "t"}) == {"reason": "x", "reset_Token": "(hidden)"}
