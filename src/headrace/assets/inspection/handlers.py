"""What the child does with a file that it was handed open."""

from typing import Any

from headrace.tasks.context import BlockingTaskContext


def warm_up(_context: BlockingTaskContext, _order: dict[str, Any]) -> dict[str, Any]:
    """Load the libraries."""
    return {}


def inspect(_context: BlockingTaskContext, _order: dict[str, Any]) -> dict[str, Any]:
    """What the file is."""
    raise NotImplementedError


def preview(_context: BlockingTaskContext, _order: dict[str, Any]) -> dict[str, Any]:
    """A small picture of it."""
    raise NotImplementedError


def strip_location(_context: BlockingTaskContext, _order: dict[str, Any]) -> dict[str, Any]:
    """The file without the place where it was taken."""
    raise NotImplementedError
