"""What keeps a deployment healthy over the years."""
