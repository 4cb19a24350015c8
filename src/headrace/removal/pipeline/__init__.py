"""Removal as tasks: the four steps, each in a child of little power, with what it leaves kept in storage."""
