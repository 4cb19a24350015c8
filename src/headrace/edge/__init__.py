"""Building blocks of all routes: authentication, paging, problem details, idempotency, limits, entity tags."""
