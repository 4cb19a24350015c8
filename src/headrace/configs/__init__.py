"""Configs: settings that change at run time, typed by key, for all users, a tenant or a user."""
