"""Deletion of accounts: requested, undone, carried out. docs/why/deletion.md explains it."""
