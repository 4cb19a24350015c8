"""Retention of the edge: expired idempotency keys, and rate limit rows without effect."""

from headrace.edge import limits, stored_answers
from headrace.purging import Purge

PURGES = (Purge("idempotency_keys", stored_answers.reap), Purge("rate_limits", limits.forget))
