"""Webhooks: endpoints, signed deliveries, and a record of every attempt."""
