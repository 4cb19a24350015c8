"""Removal as a service: orders, tasks and routes."""
