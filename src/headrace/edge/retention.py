"""What the edge leaves behind: answers to idempotency keys that have expired, limits that count nothing any more."""

from headrace.edge import kept_answers, limits
from headrace.purging import Purge

PURGES = (Purge("idempotency_keys", kept_answers.reap), Purge("rate_limits", limits.forget))
