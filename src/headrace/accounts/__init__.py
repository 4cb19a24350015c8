"""Who: registration, logins, sessions, API keys, roles, and what administrators do to accounts."""
