"""The audit trail, for authorized readers: over HTTP and from the command line."""
