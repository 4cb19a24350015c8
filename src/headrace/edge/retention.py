"""What the edge leaves behind: answers to idempotency keys that have expired, limits that count nothing any more."""

from headrace.edge import limits, stored_answers
from headrace.purging import Purge

PURGES = (Purge("idempotency_keys", stored_answers.reap), Purge("rate_limits", limits.forget))
