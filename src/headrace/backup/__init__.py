"""Backups of a whole deployment, in one file: rows, roles, grants, files and archives; and how to restore one."""
