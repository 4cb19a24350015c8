"""Marks on pictures."""
