"""``headrace outbox``. W-12."""

from tests.cli.conftest import Call, Place
from tests.cli.test_admin import fetch

WANTED = "INSERT INTO headrace.event_interests (consumer, pattern) VALUES ('nats', '*')"
MESSAGE = "INSERT INTO headrace.broker_messages (event_position) VALUES (1)"


def test_a_broker_that_is_gone_is_withdrawn(call: Call, migrated: Place) -> None:
    fetch(migrated, WANTED)
    fetch(migrated, MESSAGE)
    unknown = call("outbox", "withdraw", "kafka", settings=migrated.settings)
    assert unknown.code != 0
    assert "those that do: nats" in unknown.err
    assert (
        "1 messages that waited for it are forgotten"
        in call("outbox", "withdraw", "nats", settings=migrated.settings).err
    )
    assert fetch(migrated, "SELECT FROM headrace.event_interests") == []
    assert fetch(migrated, "SELECT FROM headrace.broker_messages") == []
    (row,) = fetch(migrated, "SELECT data ->> 'consumer' AS name FROM headrace.audit_events WHERE action = 'deleted'")
    assert row["name"] == "nats"
