"""Async generators that hold something are closed by whoever reads them, not by the garbage collector."""

import gc
import sys
from collections.abc import AsyncGenerator, Iterator
from contextlib import contextmanager
from types import AsyncGeneratorType
from typing import Any

import headrace

_OURS = headrace.__path__[0]


@contextmanager
def all_closed() -> Iterator[None]:
    """Around what leaves a generator of ours before its end: fails if none but the garbage collector closes it."""
    hooks = sys.get_asyncgen_hooks()
    assert hooks.finalizer is not None, "within a running loop"
    left: list[str] = []

    def note(generator: AsyncGenerator[Any, Any]) -> None:
        assert isinstance(generator, AsyncGeneratorType)
        if generator.ag_code.co_filename.startswith(_OURS):
            left.append(generator.ag_code.co_qualname)
        assert hooks.finalizer is not None
        hooks.finalizer(generator)

    sys.set_asyncgen_hooks(finalizer=note)
    try:
        yield
    finally:
        gc.collect()
        sys.set_asyncgen_hooks(finalizer=hooks.finalizer)
    assert left == []
