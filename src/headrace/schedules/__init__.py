"""Schedules: cron expressions, intervals and single runs of tasks."""
