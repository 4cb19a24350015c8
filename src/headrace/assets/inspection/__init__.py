"""What a file is, from its content alone: read in a child process of little power, never in ours."""
