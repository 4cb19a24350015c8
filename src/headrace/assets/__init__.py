"""Files that users bring: taken in, looked into, kept safe, handed out and let go."""
