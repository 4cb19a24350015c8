"""The audit trail, for those who may read it: over HTTP and from the command line."""
