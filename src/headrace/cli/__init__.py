"""The ``headrace`` program: one file for each group of commands; each only wires and runs."""

from headrace.cli.app import main

__all__ = ["main"]
