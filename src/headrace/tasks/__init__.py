"""Tasks: what runs."""
