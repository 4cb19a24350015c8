"""The Python reference shows every public name, and says something of each."""

import inspect
from dataclasses import fields
from importlib import import_module
from typing import Any

import pytest

import headrace
from headrace.cli.python_page import SECTIONS, fields_of, members_of, parts_of, public_names, unwrapped
from headrace.client import Client, SyncClient
from headrace.tasks.options import TaskOptions
from headrace.tasks.registry import TaskType
from tests.conftest import ROOT

PAGE = (ROOT / "docs/reference/python.md").read_text()
MODULES = sorted({section.module for section in SECTIONS})
PUBLIC = [(module, name) for module in MODULES for name in public_names(import_module(module))]


@pytest.mark.parametrize(("module", "name"), PUBLIC, ids=lambda part: part)
def test_every_public_name_is_on_the_page_with_a_docstring(module: str, name: str) -> None:
    value: Any = getattr(import_module(module), name)
    at_home = name if getattr(headrace, name, None) is value else f"{module.partition('.')[2]}.{name}"
    assert f"\n### `{at_home.lstrip('.')}`\n" in PAGE
    assert said(unwrapped(value)), f"{name} has no docstring"
    if not inspect.isclass(value) or value is SyncClient:
        return
    for field in fields_of(value):
        assert field.doc or module == "headrace.client", f"{name}.{field.name} has nothing below it"
    for kind in (value, *parts_of(value).values()):
        assert said(kind), f"{kind.__name__} has no docstring"
        for verb, member in members_of(kind).items():
            assert member.doc or verb == "__init__", f"{kind.__name__}.{verb} has no docstring"


def said(value: Any) -> str:
    text = vars(value).get("__doc__") if inspect.isclass(value) else value.__doc__
    return "" if (text or "").startswith(f"{value.__name__}(") else text or ""  # what dataclasses make up


def test_the_sections_name_nothing_twice_and_leave_nothing_out() -> None:
    named = [name for section in SECTIONS if section.module == "headrace" for name in section.names or ()]
    assert sorted(named) == sorted(public_names(headrace))


def test_the_client_without_a_loop_has_the_same_verbs() -> None:
    def verbs(kind: type) -> set[str]:
        return {name for name in members_of(kind) if not name.startswith("_")}

    assert verbs(SyncClient) == verbs(Client)


def test_the_typed_options_are_those_of_a_task_type() -> None:
    declared = {field.name for field in fields(TaskType)} - {"name", "handler", "payload", "result"}
    assert set(TaskOptions.__annotations__) == declared
