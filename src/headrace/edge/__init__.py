"""What every package's routes are built with: who is calling, paging, problems, idempotency, limits, entity tags."""
