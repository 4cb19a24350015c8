"""Actions on all rows that a filter matches: asked for once, carried out by a task that can be followed."""
