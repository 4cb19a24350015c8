"""Handlers away from the loop: ``def`` ones in threads, ``isolation="process"`` ones in children that can be killed."""

from headrace.tasks.isolation.children import Children
from headrace.tasks.isolation.errors import Crashed, HandlerFailed, Killed, ProgramBroken, ReportFailed
from headrace.tasks.isolation.program import load_registry
from headrace.tasks.isolation.single import run_single
from headrace.tasks.isolation.threads import Threads, run_in_thread

__all__ = [
    "Children",
    "Crashed",
    "HandlerFailed",
    "Killed",
    "ProgramBroken",
    "ReportFailed",
    "Threads",
    "load_registry",
    "run_in_thread",
    "run_single",
]
