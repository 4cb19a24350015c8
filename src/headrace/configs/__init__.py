"""Settings that change while the product runs: typed by key, for everyone, a tenant or a user."""
