"""Marks in PDFs and slides."""
