"""Recent changes, streamed to watching operators."""
