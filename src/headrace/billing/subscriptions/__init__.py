"""Subscriptions: a user's plan, its period and its renewal."""
