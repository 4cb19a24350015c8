"""The SQL of accounts, a module for each table."""
