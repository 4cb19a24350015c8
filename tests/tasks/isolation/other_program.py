"""Types that are in no program: as a part of the product declares them, in a module of its own."""

import os
from typing import Any

from headrace.tasks.context import BlockingTaskContext
from headrace.tasks.registry import Registry

own = Registry()


@own.task("own", isolation="process", environment=("SHOP_WORD", "SHOP_SET=here", "SHOP_UNSET"))
def run_own(context: BlockingTaskContext, payload: Any) -> dict[str, Any]:
    shop = {name: value for name, value in os.environ.items() if name.startswith("SHOP_")}
    return {"pid": os.getpid(), "payload": payload, "shop": shop}


class Group:
    @staticmethod
    def static(_context: BlockingTaskContext, _payload: Any) -> str:
        return "static"

    @classmethod
    def of_class(cls, _context: BlockingTaskContext, _payload: Any) -> str:
        return cls.__name__

    def of_one(self, context: BlockingTaskContext, payload: Any) -> None: ...


def hidden(context: BlockingTaskContext, payload: Any) -> None: ...


registered_before = hidden


def hidden(context: BlockingTaskContext, payload: Any) -> None:  # type: ignore[no-redef]
    raise AssertionError("not the one that was registered")
