"""Commands whose code is loaded when they run: `--help` does not wait for the web framework to load."""

import sys
from contextlib import nullcontext
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

from headrace.extras import gc_paused_while_importing


@dataclass(frozen=True, slots=True)
class Entry:
    """A command of the program: where it is (``module:function``, or the ``module:app`` of a group), and its line in
    `headrace --help`, which is what its own help begins with."""

    home: str
    help: str
    hidden: bool = False
    afar: bool = False  # whether it can be sent to a server elsewhere: --url, --key, --profile


class Later(TyperCommand):
    """Stands for a command until it is called."""

    def __init__(self, name: str, entry: Entry) -> None:
        super().__init__(name, help=entry.help, hidden=entry.hidden)
        self._home = entry.home
        self._afar = entry.afar

    @cached_property
    def loaded(self) -> Any:
        module, _, attribute = self._home.partition(":")
        with nullcontext() if module in sys.modules else gc_paused_while_importing():
            command = getattr(import_module(module), attribute)
        built: Any
        if isinstance(command, typer.Typer):
            built = typer.main.get_group(command)
            built.name = self.name
        else:
            alone = typer.Typer(add_completion=False)
            alone.command(self.name)(command)
            built = typer.main.get_command(alone)
        if self._afar:
            from headrace.cli.place import add_options

            add_options(built)
        return built

    def make_context(self, *args: Any, **options: Any) -> Any:
        return self.loaded.make_context(*args, **options)


def group_of(entries: dict[str, Entry]) -> type[TyperGroup]:
    """The class of a group that has these commands."""

    class Group(TyperGroup):
        def __init__(self, **options: Any) -> None:
            super().__init__(**options)
            self.commands.update({name: Later(name, entry) for name, entry in entries.items()})

    return Group
