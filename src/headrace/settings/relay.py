"""Relays and their broker."""

from datetime import timedelta
from typing import Annotated, ClassVar

from pydantic import Field, SecretStr

from headrace.settings.kinds import Duration, Group, Words, setting


class RelaySettings(Group):
    title: ClassVar[str] = "Relay"

    relay_poll_interval: Duration = setting(
        "The longest sleep of a relay, which passes events to webhooks, notifications and brokers. New events wake it; "
        "this is for lost notifications and for retries.",
        timedelta(seconds=1),
    )
    relay_listen: bool = setting(
        "Whether relays listen for notifications. `false` polls only, for a database behind a transaction pooler.",
        True,
    )
    relay_batch: Annotated[int, Field(ge=1, le=10_000)] = setting(
        "The number of objects (tasks, subscriptions) whose events a relay claims at once.", 200
    )
    relay_max_tries: Annotated[int, Field(ge=1, le=1000)] = setting(
        "After this many failed tries an event is dead until an administrator revives it. 20 take about twelve hours.",
        20,
    )
    nats_url: SecretStr | None = setting(
        "A NATS server to publish events to, such as `nats://user:password@nats:4222`; it must have JetStream. Needs "
        "the extra `nats`. Unset, events are not published to NATS.",
        None,
    )
    nats_events: Words = setting(
        "Which events are published to NATS, separated by commas: `task.succeeded`, `task.*`, or `*` for all.", ("*",)
    )
    nats_subject: str = setting(
        "The prefix of message subjects; the event's type follows: `headrace.task.created`.", "headrace"
    )
    nats_stream: str = setting(
        "The JetStream stream of the messages. It is created if missing, and otherwise not changed.",
        "HEADRACE",
    )
