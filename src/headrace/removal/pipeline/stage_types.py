"""The children's own task types: one stage, and one stage that may need LibreOffice."""

from headrace.removal.pipeline import stages
from headrace.tasks.registry import ProcessLimits, Registry, TaskType

# By themselves these libraries reserve address space for as many threads as the machine has cores: at 16, a gigabyte.
_TWO_THREADS = ("OPENBLAS_NUM_THREADS=2", "OPENCV_FOR_THREADS_NUM=2")


def stage_types(limits: ProcessLimits) -> tuple[TaskType, TaskType]:
    registry = Registry()
    for name, handler, free in (
        ("headrace.removal_stage", stages.run_stage, False),
        # LibreOffice opens what it likes and talks to itself through a socket; its network is taken away in ``legacy``.
        ("headrace.removal_conversion", stages.run_with_converter, True),
    ):
        registry.task(name, isolation="process", limits=limits, environment=_TWO_THREADS, network=free, files=free)(
            handler
        )
    return registry.get("headrace.removal_stage"), registry.get("headrace.removal_conversion")
