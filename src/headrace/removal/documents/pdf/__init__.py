"""Marks that are objects of a PDF."""
