"""Accounts: registration, logins, sessions, API keys, roles and administration."""
