"""Sending events to webhook endpoints."""

from datetime import timedelta
from typing import Annotated, ClassVar, Self

from pydantic import BeforeValidator, Field, PositiveInt, SecretStr, model_validator

from headrace.settings.kinds import Duration, Group, Networks, comma_separated, duration, setting


def _durations(value: object) -> object:
    parts = comma_separated(value)
    return [duration(part) for part in parts] if isinstance(parts, list) else parts


Secrets = Annotated[tuple[SecretStr, ...], BeforeValidator(comma_separated)]
Durations = Annotated[
    tuple[Annotated[timedelta, Field(gt=timedelta(0))], ...], BeforeValidator(_durations), Field(min_length=1)
]


class WebhookSettings(Group):
    title: ClassVar[str] = "Webhooks"

    webhook_key: SecretStr | None = setting(
        "Encrypts the secrets of endpoints; at least 32 characters, the same for all processes (`openssl rand "
        "-hex 32`). Unset, `HEADRACE_SECRET_KEY` is used.",
        None,
    )
    webhook_old_keys: Secrets = setting(
        "Earlier values of the key above, or of `HEADRACE_SECRET_KEY` if it was used instead, separated by "
        "commas. Remove them after `headrace webhooks rotate-keys` has encrypted everything with the current key.",
        (),
    )
    webhook_secret_overlap: Duration = setting(
        "How long the old secret of an endpoint still signs after a new one was made.", timedelta(hours=24)
    )
    webhook_local_targets: bool | None = setting(
        "Whether endpoints may be on this machine (127.0.0.0/8 and ::1, also by http): for development. Unset, "
        "`headrace up` allows it while it listens on this machine only and no proxy or public address is named.",
        None,
    )
    webhook_networks: Networks = setting(
        "Private networks where endpoints may be, also by http, separated by commas (`10.20.0.0/16`). Every user who "
        "may create an endpoint can then send requests there.",
        (),
    )
    webhook_max_endpoints: PositiveInt = setting("Endpoints that one user may have.", 50)
    webhook_concurrency: Annotated[int, Field(ge=1, le=256)] = setting(
        "Concurrent requests of one process to one endpoint. An endpoint begins with two, and grows up to "
        "this while it succeeds.",
        16,
    )
    webhook_requests: Annotated[int, Field(ge=1, le=10_000)] = setting(
        "Concurrent requests of one process to all endpoints.", 500
    )
    webhook_retry_delays: Durations = setting(
        "Delays before each further attempt of a failed delivery, separated by commas, with a jitter of a fifth. "
        "The last delay repeats until an endpoint's `max_retries` is reached. The default is Standard Webhooks'.",
        "5s,5m,30m,2h,5h,10h,14h,20h,24h",
    )
    webhook_pause_after: Duration = setting(
        "An endpoint that has failed for this long, without one success, is paused, and its owner notified.",
        timedelta(days=5),
    )
    webhook_lifetime: Annotated[Duration, Field(le=timedelta(days=90))] = setting(
        "How long a delivery may wait in total, for example for a paused endpoint; then it expires.", timedelta(days=7)
    )

    @model_validator(mode="after")
    def _check_webhook_keys(self) -> Self:
        for key in (self.webhook_key, *self.webhook_old_keys):
            if key is not None and len(key.get_secret_value()) < 32:
                raise ValueError("webhook_key and webhook_old_keys must have at least 32 characters each")
        return self
