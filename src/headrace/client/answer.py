"""The base of all answers, and what some of them say beside their fields."""

from collections.abc import Mapping
from dataclasses import MISSING, Field, dataclass, fields
from datetime import datetime
from typing import Any, ClassVar, Self

_ENDED = frozenset({"SUCCEEDED", "FAILED", "CANCELED"})


@dataclass(frozen=True, slots=True)
class Answer:
    """Base class of answers. Fields of a newer server are ignored; those that an older one omits are empty."""

    _times: ClassVar[frozenset[str]] = frozenset()
    _parts: ClassVar[Mapping[str, type["Answer"]]] = {}

    @classmethod
    def of(cls, data: Mapping[str, Any]) -> Self:
        return cls(
            **{
                each.name: cls._value(each.name, data.get(each.name))
                for each in fields(cls)
                if each.name in data or not _has_default(each)
            }
        )

    @classmethod
    def _value(cls, name: str, raw: Any) -> Any:
        if raw is None:
            return None
        if name in cls._times:
            return datetime.fromisoformat(raw)
        if name in cls._parts:
            part = cls._parts[name]
            return tuple(map(part.of, raw)) if isinstance(raw, list) else part.of(raw)
        return raw


def _has_default(field: Field[Any]) -> bool:
    return field.default is not MISSING or field.default_factory is not MISSING


class TaskState(Answer):
    __slots__ = ()

    @property
    def is_over(self) -> bool:
        """Whether it succeeded, failed or was canceled."""
        return _status(self) in _ENDED

    @property
    def succeeded(self) -> bool:
        """Whether it succeeded."""
        return _status(self) == "SUCCEEDED"


class ExecutionState(Answer):
    __slots__ = ()

    @property
    def is_over(self) -> bool:
        """Whether it has ended."""
        return _status(self) not in ("PENDING", "RUNNING")


class RemovalState(Answer):
    __slots__ = ()

    @property
    def succeeded(self) -> bool:
        """Whether the mark is gone, and the file can be downloaded."""
        return _status(self) == "SUCCEEDED"

    @property
    def needs_review(self) -> bool:
        """Whether the user must choose among the candidates."""
        return getattr(self, "error_code", None) == "NEEDS_REVIEW"


def _status(answer: Answer) -> str:
    # The generated subclasses have the field.
    status: str = answer.status  # type: ignore[attr-defined]
    return status
