"""Builds the console into the wheel, or into the source tree for an editable install."""

import importlib.util
import os
from pathlib import Path
from types import ModuleType
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class ConsoleHook(BuildHookInterface):  # type: ignore[type-arg]
    """Skipped with HEADRACE_SKIP_CONSOLE=1, and where the console was built from the same sources already."""

    PLUGIN_NAME = "custom"

    def dependencies(self) -> list[str]:
        console = self._console()
        return [] if console is None or console.is_fresh() else [console.NODE_WHEEL]

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:  # noqa: ARG002 - hatchling's signature
        if (console := self._console()) is not None:
            console.build()

    def _console(self) -> ModuleType | None:
        path = Path(self.root) / "console" / "build.py"
        if os.environ.get("HEADRACE_SKIP_CONSOLE") or self.target_name != "wheel" or not path.exists():
            return None
        spec = importlib.util.spec_from_file_location("headrace_console_build", path)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module
