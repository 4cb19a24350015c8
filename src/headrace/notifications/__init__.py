"""Notifications inside the product: one for each event, in the user's language."""
