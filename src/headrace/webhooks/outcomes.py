"""Decides from an answer: done, retry later, or never again."""

import random
from collections.abc import Mapping
from datetime import UTC, timedelta
from email.utils import parsedate_to_datetime

from headrace import clock
from headrace.webhooks.config import RetrySchedule
from headrace.webhooks.http.client import Reply
from headrace.webhooks.model import DeliveryStatus
from headrace.webhooks.store.queue import Claimed, Outcome

GONE = 410
_BUSY = (429, 502, 503, 504)


def decide(claimed: Claimed, reply: Reply, headers: Mapping[str, str], retries: RetrySchedule) -> Outcome:
    """2xx is success, 410 ends all; everything else, also a redirect, is retried while attempts are left."""
    status, retry_in = _status(claimed, reply, retries)
    return Outcome(
        claimed,
        status,
        headers,
        response_status=reply.status,
        response_body=reply.body,
        error=reply.error or _remark(reply, status),
        duration=reply.duration,
        retry_in=retry_in,
        pause=None if reply.is_success else _requested_pause(reply, retries),
    )


def _status(claimed: Claimed, reply: Reply, retries: RetrySchedule) -> tuple[DeliveryStatus, timedelta | None]:
    if reply.is_success:
        return DeliveryStatus.SUCCESS, None
    if reply.status == GONE:
        return DeliveryStatus.FAILED, None
    if claimed.failures >= claimed.endpoint.max_retries:
        return DeliveryStatus.DEAD, None
    delay = retries.delays[min(claimed.failures, len(retries.delays) - 1)]
    jittered = delay * random.uniform(0.8, 1.2)  # noqa: S311 - spreads load, guards nothing
    return DeliveryStatus.RETRYING, max(jittered, _requested_pause(reply, retries) or timedelta(0))


def _remark(reply: Reply, status: DeliveryStatus) -> str | None:
    """An explanation beside the status."""
    if reply.status == GONE:
        return "the endpoint says that it is gone (410): it is disabled"
    if reply.status is not None and 300 <= reply.status < 400:
        return "redirects are not followed: change the endpoint's URL"
    if status is DeliveryStatus.DEAD:
        return "this was the last attempt"
    return None


def _requested_pause(reply: Reply, retries: RetrySchedule) -> timedelta | None:
    """The pause that ``Retry-After`` requests, in seconds or as a date, within bounds."""
    if reply.status not in _BUSY or reply.retry_after is None:
        return None
    asked = _retry_after(reply.retry_after)
    return None if asked is None else min(max(asked, timedelta(0)), retries.max_retry_after)


def _retry_after(text: str) -> timedelta | None:
    if text.strip().isdigit():
        return timedelta(seconds=min(int(text.strip()[:9]), 10**8))
    try:
        at = parsedate_to_datetime(text)
    except (ValueError, TypeError):
        return None
    return (at if at.tzinfo else at.replace(tzinfo=UTC)) - clock.now()
