"""Webhooks, for programs with an event loop: ``client.webhooks``."""

from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from typing import Any

from headrace.client.generated.answers import Delivery, Endpoint, EndpointStatistics
from headrace.client.verbs import Verbs, given, part

_ENDPOINTS = "/v1/webhooks/endpoints"
_DELIVERIES = "/v1/webhooks/deliveries"


@dataclass(frozen=True, slots=True)
class NewEndpoint:
    """An endpoint to create. Without a ``secret`` one is generated."""

    name: str
    url: str
    subscribed_events: Sequence[str]
    task_types: Sequence[str] | None = None
    timeout_ms: int | None = None
    max_retries: int | None = None
    allow_ips: Sequence[str] | None = None
    ordered: bool | None = None
    every_user: bool | None = None
    secret: str | None = None

    def as_json(self) -> dict[str, Any]:
        return given({each.name: getattr(self, each.name) for each in fields(self)})


class Webhooks(Verbs):
    """Webhook endpoints and deliveries."""

    async def create(self, endpoint: NewEndpoint, *, key: str | None = None) -> Endpoint:
        """Create an endpoint. Its ``secret`` is shown only once: store it for the receiver."""
        return Endpoint.of(await self._create(_ENDPOINTS, endpoint.as_json(), key))

    async def get(self, endpoint_id: str) -> Endpoint:
        """One endpoint, without its secret."""
        return Endpoint.of(await self._get(f"{_ENDPOINTS}/{part(endpoint_id)}"))

    async def update(self, endpoint_id: str, *, version: int | None = None, **changes: Any) -> Endpoint:
        """Change some fields; ``None`` removes a filter (``task_types``, ``allow_ips``)."""
        path = f"{_ENDPOINTS}/{part(endpoint_id)}"
        return Endpoint.of(await self._change(path, version, safe=False, method="PATCH", body=changes))

    async def delete(self, endpoint_id: str) -> None:
        """Delete an endpoint; waiting deliveries are not sent."""
        await self._connection.request("DELETE", f"{_ENDPOINTS}/{part(endpoint_id)}", safe=False)

    async def pause(self, endpoint_id: str) -> Endpoint:
        """Pause sending; events are queued."""
        return Endpoint.of(await self._change(f"{_ENDPOINTS}/{part(endpoint_id)}/pause", None, safe=True))

    async def resume(self, endpoint_id: str) -> Endpoint:
        """Resume sending, oldest deliveries first."""
        return Endpoint.of(await self._change(f"{_ENDPOINTS}/{part(endpoint_id)}/resume", None, safe=True))

    async def rotate_secret(self, endpoint_id: str, *, secret: str | None = None, key: str | None = None) -> Endpoint:
        """Set a new ``secret``, shown only once; the old one signs beside it for a while."""
        path = f"{_ENDPOINTS}/{part(endpoint_id)}/rotate-secret"
        return Endpoint.of(await self._create(path, given({"secret": secret}), key))

    async def statistics(self, endpoint_id: str, *, hours: int = 24) -> EndpointStatistics:
        """Statistics of an endpoint."""
        path = f"{_ENDPOINTS}/{part(endpoint_id)}/statistics"
        return EndpointStatistics.of(await self._get(path, {"hours": hours}))

    async def test(self, endpoint_id: str, *, key: str | None = None) -> Delivery:
        """Send a test event; ``delivery`` has the result."""
        return Delivery.of(await self._create(f"{_ENDPOINTS}/{part(endpoint_id)}/test", None, key))

    async def delivery(self, delivery_id: str) -> Delivery:
        """One attempt with its request and response."""
        return Delivery.of(await self._get(f"{_DELIVERIES}/{part(delivery_id)}"))

    async def resend(self, delivery_id: str, *, key: str | None = None) -> Delivery:
        """Resend its event, regardless of the result."""
        return Delivery.of(await self._create(f"{_DELIVERIES}/{part(delivery_id)}/resend", None, key))

    async def resend_failed(self, endpoint_id: str, *, since: datetime, until: datetime | None = None) -> int:
        """Resend all that failed for good in this time range; returns their number. Repeats while more remain."""
        body = given({"since": since, "until": until})
        resent: int = 0
        while True:
            path = f"{_ENDPOINTS}/{part(endpoint_id)}/resend"
            answer = await self._change(path, None, safe=True, body=body)
            resent += answer["resent"]
            if not answer["more"]:
                return resent

    async def deliveries(
        self,
        *,
        endpoint_id: str | None = None,
        event_id: str | None = None,
        event_type: str | None = None,
        status: str | None = None,
        created_after: datetime | None = None,
        created_before: datetime | None = None,
        user_id: str | None = None,
    ) -> AsyncGenerator[Delivery, None]:
        """Attempts, newest first."""
        asked = {
            "endpoint_id": endpoint_id,
            "event_id": event_id,
            "event_type": event_type,
            "status": status,
            "created_after": created_after,
            "created_before": created_before,
            "user_id": user_id,
        }
        async for item in self._pages(_DELIVERIES, asked):
            yield Delivery.of(item)

    async def list(self, *, status: str | None = None, user_id: str | None = None) -> AsyncGenerator[Endpoint, None]:
        """Your endpoints, newest first."""
        async for item in self._pages(_ENDPOINTS, {"status": status, "user_id": user_id}):
            yield Endpoint.of(item)
