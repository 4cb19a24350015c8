"""Retention, monthly partitions and the archive they go to."""
