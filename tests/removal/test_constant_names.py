"""A number that decides says in its name what it limits and in which unit."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import headrace.removal

NAMED = re.compile(
    r"_?(MIN|MAX)_\w+|\w+_(PX|RATIO|SCORE|SECONDS|LEVELS|COUNT|BYTES|DB|DEGREES|MS|PERCENT|ROWS|PIXELS|FRAMES|ODDS|ALPHA|"
    r"ERROR|COEFFICIENT|RGB|POINTS|UNITS|TAG|CODE|MODE|MODES|TYPE|RANGE|VERSION|ORIENTATION|PER_\w+|MILLIPERCENT)"
)
# By name what they are: the matrix that changes nothing, black and white, Pillow's sizes of colour planes.
OTHERS = {"IDENTITY", "RGB_LIGHT", "FULL", "HALF_WIDTH", "HALF", "_SQUARE_SIDES_AND_WEIGHTS"}


def numbers(tree: ast.Module) -> Iterator[str]:
    for node in tree.body:
        if isinstance(node, ast.Assign):
            for target in node.targets:
                names = target.elts if isinstance(target, ast.Tuple) else [target]
                values = node.value.elts if isinstance(node.value, ast.Tuple) and len(names) > 1 else [node.value]
                for name, value in zip(names, values, strict=False):
                    if isinstance(name, ast.Name) and name.id.upper() == name.id and is_number(value):
                        yield name.id


def is_number(node: ast.expr) -> bool:
    if isinstance(node, ast.Tuple):
        return bool(node.elts) and all(map(is_number, node.elts))
    if isinstance(node, ast.BinOp):
        return is_number(node.left) and is_number(node.right)
    if isinstance(node, ast.UnaryOp):
        return is_number(node.operand)
    return isinstance(node, ast.Constant) and isinstance(node.value, int | float) and not isinstance(node.value, bool)


def test_constants_of_removal_name_their_unit() -> None:
    folder = Path(headrace.removal.__file__).parent
    unnamed = [
        f"{path.relative_to(folder)}: {name}"
        for path in sorted(folder.rglob("*.py"))
        for name in numbers(ast.parse(path.read_text()))
        if not NAMED.fullmatch(name) and name not in OTHERS
    ]
    assert not unnamed, "\n".join(unnamed)
