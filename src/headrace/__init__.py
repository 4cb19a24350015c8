"""Headrace: tasks, schedules, audit, metering and webhooks on one PostgreSQL."""

__version__ = "0.1.0"
