"""Testing your own tasks: a handler alone, without a database; or with a scratch database and a worker.

>>> ran = run(registry, "greet", {"name": "Ada"})
>>> assert ran.result == "Hello, Ada!"

``headrace.testing.fixtures`` has the pytest fixtures for the latter:

>>> pytest_plugins = ["headrace.testing.fixtures"]  # in the conftest.py of your project's root
"""

from headrace.tasks.model import Outcome
from headrace.testing.recording import RanStep, SavedFile
from headrace.testing.running import Ran, run, run_async
from headrace.testing.scratch import ScratchDatabase
from headrace.testing.worker import TestWorker

__all__ = ["Outcome", "Ran", "RanStep", "SavedFile", "ScratchDatabase", "TestWorker", "run", "run_async"]
