"""Many pictures with one mark in a child process of little power, as ``confined`` does with one."""

import contextlib
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path

from pydantic import TypeAdapter

from headrace.errors import HeadraceError
from headrace.removal import paths
from headrace.removal.errors import ModelDamaged, PictureUnreadable, TargetUnusable
from headrace.removal.images import confined
from headrace.removal.images.shared import FEWEST
from headrace.removal.report import ManyOrder, ManyReport, Order, Report
from headrace.tasks.context import BlockingTaskContext
from headrace.tasks.errors import Fatal
from headrace.tasks.isolation.errors import Crashed, HandlerFailed
from headrace.tasks.isolation.single import run_single
from headrace.tasks.registry import Registry, TaskType

PICTURES = "headrace.pictures"
_ERRORS: dict[str, type[HeadraceError]] = {each.code: each for each in (ModelDamaged, TargetUnusable)}


def carry_out(orders: list[Order], *, on_progress: Callable[[int], object] | None = None) -> list[Report | None]:
    """A report for each picture that the others tell the mark of, None for the rest. Results appear whole or not."""
    usable = [number for number, order in enumerate(orders) if _is_usable(order)]
    reports: list[Report | None] = [None] * len(orders)
    if len(usable) < FEWEST:
        return reports
    confined.require_engines()
    with contextlib.ExitStack() as drafts:
        drafted = []
        for number in usable:
            order = orders[number]
            result = drafts.enter_context(paths.written_at_once(order.result, force=order.force))
            drafted.append(replace(order, result=result))
        try:
            found = run_single(many_type(orders[0].threads), asdict(ManyOrder(tuple(drafted))), on_progress=on_progress)
        except Fatal as exc:
            raise _ERRORS.get(str(exc.details.get("code")), PictureUnreadable)(exc.message) from None
        except (Crashed, HandlerFailed) as exc:
            raise PictureUnreadable(f"The pictures could not be worked on: {exc.message.splitlines()[0]}") from exc
    for number, report in zip(usable, TypeAdapter(ManyReport).validate_python(found).reports, strict=True):
        reports[number] = report
    return reports


def _is_usable(order: Order) -> bool:
    """What is wrong with a single file is said when it is done alone."""
    try:
        paths.require_source(Path(order.source))
        if order.result is not None:
            paths.require_result(Path(order.result), Path(order.source), force=order.force)
    except HeadraceError:
        return False
    return True


def many_type(threads: int) -> TaskType:
    """Pictures with one mark as a task: its payload is a ``ManyOrder``, its result a ``ManyReport``."""
    registry = Registry()
    registry.task(
        PICTURES, isolation="process", limits=confined.limits(threads), environment=confined.TWO_THREADS, network=False
    )(clean)
    return registry.get(PICTURES)


def clean(context: BlockingTaskContext, order: ManyOrder) -> ManyReport:
    """The handler."""
    from headrace.removal.local import process_many

    try:
        return process_many(order, context.progress, lambda: context.scratch)
    except tuple(_ERRORS.values()) as exc:
        raise Fatal(exc.message, code=exc.code) from exc
