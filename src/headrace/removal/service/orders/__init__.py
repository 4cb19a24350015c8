"""Ordering a removal through the API: what it costs, whose right it is, and the task that does it."""
