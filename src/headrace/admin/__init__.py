"""Operators' tools: checks, metrics, overview, bulk actions, live changes, audit and outbox routes."""
