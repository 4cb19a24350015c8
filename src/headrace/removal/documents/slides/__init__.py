"""Marks that are shapes of a presentation."""
