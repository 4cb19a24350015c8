"""Task types: what a program can run, declared once and frozen when the worker starts.

>>> registry = Registry()
>>> @registry.task("report.build", max_attempts=5, timeout=timedelta(minutes=2))
... async def build(context: TaskContext, payload: ReportOrder) -> Report: ...
"""

import difflib
import inspect
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import timedelta
from typing import Any, Literal, TypeVar, Unpack, get_origin, get_type_hints

from pydantic import BaseModel, PydanticSchemaGenerationError, TypeAdapter, ValidationError

from headrace.tasks import addresses, limit_keys, retention_periods, rights, units
from headrace.tasks.errors import BadResult, PayloadInvalid, UnknownTaskType
from headrace.tasks.execution import Backoff, BadTaskType, Isolation, ProcessLimits
from headrace.tasks.model import DEFAULT_QUEUE, MEDIA_STEPS
from headrace.tasks.options import TaskOptions

Handler = Callable[..., Any]
HandlerT = TypeVar("HandlerT", bound=Handler)

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_.:-]{0,254}")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_STEP = re.compile(r"[a-z][a-z0-9_.-]{0,63}")


@dataclass(frozen=True, slots=True)
class TaskType:
    """One kind of work."""

    name: str
    handler: Handler
    isolation: Isolation
    queue: str = DEFAULT_QUEUE
    priority: int = 0
    max_attempts: int = 3
    backoff: Backoff = Backoff()  # noqa: RUF009 - frozen
    timeout: timedelta | None = None
    grace: timedelta = timedelta(seconds=10)  # from asking a handler to stop until it is killed or given up
    steps: tuple[str, ...] = ()
    events: bool | Literal["always"] = True  # events for subscribers; "always": also without any
    step_events: bool = False
    followers: tuple[str, ...] = ()  # further followers by name, see followers.py
    max_running: int | None = None
    max_running_per_key: int | None = None
    limit_key: str | None = None  # the key of max_running_per_key: "user" or "payload.FIELD"
    limited_by_plan: bool = False  # a user's running tasks of all such types are limited by the user's plan
    units: int | str | None = None  # its price: a whole number, or "payload.FIELD"
    submit: str = rights.ADMINS  # "admins", "users", or a scope of API keys; see rights.py
    # How long a task is kept after its end; None: as the settings say. A mapping has no hash.
    retention: retention_periods.Retention = field(default=None, hash=False)
    # Of its child process, with isolation="process":
    limits: ProcessLimits = ProcessLimits()  # noqa: RUF009 - frozen
    environment: tuple[str, ...] = ()  # NAME passes on the worker's variable, NAME=value sets one
    network: bool = True  # False: no socket can be made (Linux on x86-64 and arm64)
    files: bool = True  # False: nothing can be opened but Python, libraries and PYTHONPATH (Linux 5.19)
    payload: TypeAdapter[Any] | None = None
    result: TypeAdapter[Any] | None = None
    description: str = ""

    def check_payload(self, payload: Any) -> Any:
        """The payload as the handler wants it; ``PayloadInvalid`` names the field that does not fit."""
        if self.payload is None:
            return payload
        try:
            return self.payload.validate_python(payload)
        except ValidationError as exc:
            raise PayloadInvalid(
                f"The payload does not fit {self.name}: " + "; ".join(_explain(error) for error in exc.errors()),
                fields=[".".join(map(str, error["loc"])) or "(payload)" for error in exc.errors()],
            ) from None

    def plain_result(self, result: Any) -> Any:
        """The result as plain JSON values."""
        if self.result is not None:
            try:
                return self.result.dump_python(self.result.validate_python(result), mode="json")
            except ValidationError as exc:
                raise BadResult(
                    f"The result does not fit {self.name}: " + "; ".join(_explain(error) for error in exc.errors())
                ) from None
        if isinstance(result, BaseModel):
            return result.model_dump(mode="json")
        return result

    @property
    def address(self) -> str:
        """Where a child process imports the handler from."""
        return addresses.address_of(self.handler)

    @property
    def units_rule(self) -> str | None:
        """What a task costs, as it is stored."""
        return None if self.units is None else str(self.units)

    @property
    def payload_schema(self) -> Mapping[str, Any] | None:
        """What payloads are checked against, as JSON Schema."""
        return None if self.payload is None else self.payload.json_schema()


class Registry:
    """The task types of one program. Duplicates are refused; nothing can be added once it is frozen.

    >>> registry = Registry()
    >>> @registry.task("report.build", max_attempts=5, timeout=timedelta(minutes=2))
    ... async def build(context: TaskContext, payload: ReportOrder) -> Report: ...

    ``name in registry``, ``len(registry)`` and iterating over its types work as for a collection.
    """

    def __init__(self) -> None:
        self._types: dict[str, TaskType] = {}
        self._frozen = False

    def task(self, name: str, **options: Unpack[TaskOptions]) -> Callable[[HandlerT], HandlerT]:
        """Declare a handler: ``async def`` runs on the loop, ``def`` in a thread, ``isolation="process"`` in a child.

        The handler takes a context (``TaskContext`` for ``async def``, ``BlockingTaskContext`` for ``def``) and the
        payload. A type annotation on the payload (a pydantic model, a dataclass, a TypedDict, a dict) checks payloads,
        at submit and again before the handler runs. The return value is the result: JSON, or a type that
        its annotation converts to JSON.

        ``BadTaskType`` for an invalid declaration: a name that is taken, an option that does not exist.
        """
        _check_options(name, options)

        def register(handler: HandlerT) -> HandlerT:
            self.add(_declare(name, handler, dict(options)))
            return handler

        return register

    def add(self, task_type: TaskType) -> None:
        """Add a type that was declared elsewhere; ``BadTaskType`` for one that cannot be right, or comes too late."""
        if self._frozen:
            raise BadTaskType(f"{task_type.name} comes too late: the worker has started.")
        if task_type.name in self._types:
            raise BadTaskType(f"{task_type.name} is registered twice.")
        if task_type.limit_key is not None and not limit_keys.is_rule(task_type.limit_key):
            raise BadTaskType(
                f"{task_type.limit_key!r} is no limit_key for {task_type.name}: it is {limit_keys.ALLOWED}."
            )
        if task_type.units_rule is not None and not units.is_rule(task_type.units_rule):
            raise BadTaskType(f"{task_type.units!r} is no units for {task_type.name}: it is {units.ALLOWED}.")
        if not rights.is_rule(task_type.submit):
            raise BadTaskType(f"{task_type.submit!r} is no submit for {task_type.name}: it is {rights.ALLOWED}.")
        try:
            retention_periods.seconds_by_status(task_type.retention)
        except ValueError as exc:
            raise BadTaskType(f"{task_type.retention!r} is no retention for {task_type.name}: {exc}.") from None
        if task_type.isolation == "process":
            _check_address(task_type.name, task_type.handler, addresses.address_of)
            _check_environment(task_type)
        self._types[task_type.name] = task_type

    def freeze(self) -> None:
        """Take no more types. ``BadTaskType`` for a handler that a child process would not find."""
        for task_type in self:
            if task_type.isolation == "process":
                _check_address(task_type.name, task_type.handler, addresses.check_address)
        self._frozen = True

    def get(self, name: str) -> TaskType:
        """The type of this name; ``UnknownTaskType`` if there is none here."""
        task_type = self._types.get(name)
        if task_type is None:
            known = ", ".join(sorted(self._types)) or "none"
            raise UnknownTaskType(f"There is no task type {name!r} here; registered are: {known}.")
        return task_type

    def __contains__(self, name: str) -> bool:
        return name in self._types

    def __iter__(self) -> Iterator[TaskType]:
        return iter(self._types.values())

    def __len__(self) -> int:
        return len(self._types)

    @property
    def names(self) -> Sequence[str]:
        """All names, sorted."""
        return sorted(self._types)


# What the handler or the call itself says.
_NOT_OPTIONS = {"name", "handler", "payload", "result"}


def _check_options(name: str, options: Mapping[str, Any]) -> None:
    known = [field.name for field in fields(TaskType) if field.name not in _NOT_OPTIONS]
    for option in options:
        if option not in known:
            close = difflib.get_close_matches(option, known, n=1)
            hint = f"did you mean {close[0]}?" if close else f"there are {', '.join(sorted(known))}."
            raise BadTaskType(f"{name} has an option {option!r}, which there is not: {hint}")
    for option in ("timeout", "grace"):
        value = options.get(option)
        if value is not None and not isinstance(value, timedelta):
            raise BadTaskType(f"{option} of {name} is a timedelta, such as timedelta(seconds=30), not {value!r}.")
    for option in ("max_attempts", "max_running", "max_running_per_key"):
        value = options.get(option)
        if value is not None and (type(value) is not int or value < 1):
            raise BadTaskType(f"{option} of {name} is a whole number from 1 on, not {value!r}.")


def _declare(name: str, handler: Handler, options: dict[str, Any]) -> TaskType:
    if not _NAME.fullmatch(name):
        raise BadTaskType(f"{name!r} is no name for a task type: letters, digits and _ . : - from a letter on.")
    isolation: Isolation = options.pop("isolation", None) or (
        "async" if inspect.iscoroutinefunction(handler) else "thread"
    )
    if isolation == "async" and not inspect.iscoroutinefunction(handler):
        raise BadTaskType(f"{name} is not async: leave isolation out to run it in a thread, or say process.")
    if isolation == "thread" and inspect.iscoroutinefunction(handler):
        raise BadTaskType(f"{name} is async and so runs on the loop: leave isolation out.")
    steps = tuple(options.pop("steps", ()))
    for step in steps:
        if step not in MEDIA_STEPS and not _STEP.fullmatch(step):
            raise BadTaskType(f"{step!r} is no name for a step of {name}: lower-case letters, digits and _ . - only.")
    if isolation == "process":
        _check_address(name, handler, addresses.address_of)
    payload, result = _annotations(name, handler)
    return TaskType(
        name=name,
        handler=handler,
        isolation=isolation,
        steps=steps,
        followers=tuple(options.pop("followers", ())),
        environment=tuple(options.pop("environment", ())),
        payload=payload,
        result=result,
        description=options.pop("description", None) or inspect.getdoc(handler) or "",
        **options,
    )


def _check_address(name: str, handler: Handler, check: Callable[[Handler], object]) -> None:
    try:
        check(handler)
    except addresses.NotImportable as exc:
        raise BadTaskType(
            f"The handler of {name} cannot run in a child process: {exc}. A child imports it by its name: "
            "let it be a function of a module."
        ) from None


def _check_environment(task_type: TaskType) -> None:
    for entry in task_type.environment:
        name = entry.partition("=")[0]
        if not _VARIABLE.fullmatch(name):
            raise BadTaskType(f"{entry!r} is no variable for {task_type.name}: write NAME, or NAME=value.")
        if name.startswith("HEADRACE_"):
            raise BadTaskType(
                f"{task_type.name} cannot have {name}: Headrace's own settings hold secrets and stay out of children. "
                "Use another name."
            )


def _annotations(name: str, handler: Handler) -> tuple[TypeAdapter[Any] | None, TypeAdapter[Any] | None]:
    parameters = list(inspect.signature(handler).parameters.values())
    if len(parameters) != 2:
        raise BadTaskType(f"The handler of {name} must take two things: the context and the payload.")
    try:
        hints = get_type_hints(handler)
    except NameError as exc:
        raise BadTaskType(f"A type annotation of {name} cannot be resolved: {exc}") from None
    payload, result = hints.get(parameters[1].name, Any), hints.get("return", Any)
    # A dict that a handler gives back is plain JSON: left out, pydantic stays off the path of every such task.
    plain = result is dict or get_origin(result) is dict
    return _adapter(name, payload), None if plain else _adapter(name, result)


def _adapter(name: str, annotation: Any) -> TypeAdapter[Any] | None:
    if annotation in (Any, None, type(None), object):
        return None
    try:
        return TypeAdapter(annotation)
    except PydanticSchemaGenerationError as exc:
        raise BadTaskType(f"{name}: {annotation!r} cannot be made from JSON: {exc}") from None


def _explain(error: Any) -> str:
    where = ".".join(map(str, error["loc"])) or "(payload)"
    return f"{where}: {error['msg']}"
