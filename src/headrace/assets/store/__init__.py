"""SQL of files."""
