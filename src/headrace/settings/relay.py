"""Relays, and the broker that they publish to."""

from datetime import timedelta
from typing import Annotated, ClassVar

from pydantic import Field, SecretStr

from headrace.settings.kinds import Duration, Group, Words, setting


class RelaySettings(Group):
    title: ClassVar[str] = "Relay"

    relay_poll_interval: Duration = setting(
        "The longest sleep of a relay, which gives events to webhooks, notifications and brokers. It is woken when "
        "there are new ones; this is for a notification that was lost, and for retries.",
        timedelta(seconds=1),
    )
    relay_listen: bool = setting(
        "Whether relays listen for notifications. `false` polls only, for a database behind a transaction pooler.",
        True,
    )
    relay_batch: Annotated[int, Field(ge=1, le=10_000)] = setting(
        "Of how many things (tasks, subscriptions) a relay takes the events at once.", 200
    )
    relay_max_tries: Annotated[int, Field(ge=1, le=1000)] = setting(
        "After so many failed tries an event is given up until somebody revives it. 20 are about twelve hours.",
        20,
    )
    nats_url: SecretStr | None = setting(
        "A NATS server to publish events to, such as `nats://user:password@nats:4222`; it must have JetStream. Needs "
        "the extra `nats`. Unset, nothing is published there.",
        None,
    )
    nats_events: Words = setting(
        "Which events are published to NATS, separated by commas: `task.succeeded`, `task.*`, or `*` for all.", ("*",)
    )
    nats_subject: str = setting(
        "What the subject of a message begins with; the event's type follows: `headrace.task.created`.", "headrace"
    )
    nats_stream: str = setting(
        "The JetStream stream that takes the messages. It is made if it is not there, and left as it is if it is.",
        "HEADRACE",
    )
