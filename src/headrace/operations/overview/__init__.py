"""What operators see at a glance: what runs, what waits, what is wrong, what was chosen."""
