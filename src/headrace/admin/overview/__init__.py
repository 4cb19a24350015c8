"""The operators' overview: queues, workers, findings and settings."""
