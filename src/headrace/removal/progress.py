"""How far a job is."""

from collections.abc import Callable

Progress = Callable[[int], object]  # is called with percents; an exception from it ends the work
