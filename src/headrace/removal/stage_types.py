"""The children's own task types: one stage, and the conversion of old slides, which needs LibreOffice."""

from headrace.removal import stages
from headrace.tasks.execution import ProcessLimits
from headrace.tasks.registry import Registry, TaskType

# By themselves these libraries reserve address space for as many threads as the machine has cores: at 16, a gigabyte.
_TWO_THREADS = ("OPENBLAS_NUM_THREADS=2", "OPENCV_FOR_THREADS_NUM=2")


def stage_types(limits: ProcessLimits) -> tuple[TaskType, TaskType]:
    registry = Registry()
    registry.task(
        "headrace.removal_stage",
        isolation="process",
        limits=limits,
        environment=_TWO_THREADS,
        network=False,
        files=False,
    )(stages.run_stage)
    # It starts LibreOffice, which talks to itself through a socket, and takes everything else away from it.
    registry.task("headrace.removal_conversion", isolation="process", limits=limits)(stages.run_conversion)
    return registry.get("headrace.removal_stage"), registry.get("headrace.removal_conversion")
