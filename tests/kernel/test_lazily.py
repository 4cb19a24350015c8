"""Packages that load their names when they are first used."""

import ast
import sys
from importlib import import_module
from pathlib import Path

import pytest

PACKAGES = ["headrace.accounts", "headrace.edge", "headrace.tasks"]


@pytest.mark.parametrize("package", PACKAGES)
def test_every_name_comes_from_where_the_type_checker_believes(package: str) -> None:
    module = import_module(package)
    assert module.__file__ is not None
    body = ast.parse(Path(module.__file__).read_text()).body
    believed = [
        (each.module, alias.name)
        for block in body
        if isinstance(block, ast.If)
        for each in block.body
        if isinstance(each, ast.ImportFrom)
        for alias in each.names
    ]
    assert sorted(name for _, name in believed) == sorted(module.__all__)
    for home, name in believed:
        assert home is not None
        assert getattr(module, name) is getattr(import_module(home), name)
        assert f"{package}.{name}" not in sys.modules, f"{name} is a module of this package, too"


@pytest.mark.parametrize("package", PACKAGES)
def test_a_name_that_is_not_there(package: str) -> None:
    with pytest.raises(AttributeError, match=f"module '{package}' has no attribute 'nowhere'"):
        import_module(package).nowhere  # noqa: B018
