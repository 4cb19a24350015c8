"""Commands whose code is loaded when they are run: nobody waits for the web framework to be told what there is."""

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import cache, cached_property
from importlib import import_module
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup


@dataclass(frozen=True, slots=True)
class Entry:
    """A command of the program: where it is (``module:function``, or the ``module:app`` of a group), and its line in
    `headrace --help`, which is what its own help begins with."""

    home: str
    help: str
    hidden: bool = False
    afar: bool = False  # whether it can be sent to a server elsewhere: --url, --key, --profile


@contextmanager
def nothing_is_garbage() -> Iterator[None]:
    """What is loaded here stays to the end: looking for garbage in it takes a third of the time until a command is
    over, while it is loaded and when the process ends."""
    looked_for = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        _freeze_once()
        if looked_for:
            gc.enable()


@cache
def _freeze_once() -> None:
    gc.freeze()


class Later(TyperCommand):
    """Stands for a command until it is called."""

    def __init__(self, name: str, entry: Entry) -> None:
        super().__init__(name, help=entry.help, hidden=entry.hidden)
        self._home = entry.home
        self._afar = entry.afar

    @cached_property
    def loaded(self) -> Any:
        module, _, attribute = self._home.partition(":")
        with nullcontext() if module in sys.modules else nothing_is_garbage():
            found = getattr(import_module(module), attribute)
        built: Any
        if isinstance(found, typer.Typer):
            built = typer.main.get_group(found)
            built.name = self.name
        else:
            alone = typer.Typer(add_completion=False)
            alone.command(self.name)(found)
            built = typer.main.get_command(alone)
        if self._afar:
            from headrace.cli.place import add_options

            add_options(built)
        return built

    def make_context(self, *args: Any, **given: Any) -> Any:
        return self.loaded.make_context(*args, **given)


def group_of(entries: dict[str, Entry]) -> type[TyperGroup]:
    """The class of a group that has these commands."""

    class Group(TyperGroup):
        def __init__(self, **given: Any) -> None:
            super().__init__(**given)
            self.commands.update({name: Later(name, entry) for name, entry in entries.items()})

    return Group
