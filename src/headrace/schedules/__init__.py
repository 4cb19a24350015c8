"""Schedules: when it runs."""
