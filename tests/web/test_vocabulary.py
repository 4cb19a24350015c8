"""One vocabulary over everything that people see: the API's description, the errors, the client, the command line."""

import re
from collections.abc import Iterator
from typing import Any, cast

import pytest
import typer

from headrace import client
from headrace.accounts import service
from headrace.audit import ResourceType
from headrace.audit.model import OWN_RESOURCE_TYPES
from headrace.cli.app import app as commands
from headrace.database import Database
from headrace.edge.vocabulary import shown, stored, words_of
from headrace.schedules.model import ExecutionState
from headrace.tasks.model import ErrorCode
from headrace.web.reference import all_errors
from tests.conftest import ROOT
from tests.web.test_schema import CHEAP, SECRET, build

# A document's word, or one of two for the same: what nobody is to see.
FOREIGN_WORDS = {"success", "failure", "cancelled", "timeout", "pod", "redis", "inpainting"}
# The trail shows events as they were sealed, with document 001's names.
SEALED = {"PrincipalOut", "ResourceOut"}


@pytest.fixture(scope="module")
def description() -> dict[str, Any]:
    return build(cast("Database", None), service.open_accounts(CHEAP, secret=SECRET)).openapi()


def enums(part: Any, path: str = "") -> Iterator[tuple[str, list[str]]]:
    """Every list of words in a part of the description, and where it stands."""
    if isinstance(part, dict):
        if "enum" in part:
            yield path, part["enum"]
        for name, inner in part.items():
            yield from enums(inner, f"{path}/{name}")
    elif isinstance(part, list):
        for number, inner in enumerate(part):
            yield from enums(inner, f"{path}/{number}")


def test_every_status_is_in_capitals_and_called_status(description: dict[str, Any]) -> None:
    schemas = description["components"]["schemas"]
    for name, schema in schemas.items():
        if name in SEALED:
            continue
        for field, about in schema.get("properties", {}).items():
            assert field not in ("state", "uid"), f"{name}.{field}"
            assert not field.endswith("_uid"), f"{name}.{field}"
            if field == "status" and name != "Problem":
                words = about.get("enum") or schemas[re.findall(r"schemas/(\w+)", str(about))[0]]["enum"]
                assert all(re.fullmatch(r"[A-Z_]+", word) for word in words), f"{name}: {words}"
    for path, methods in description["paths"].items():
        assert "uid}" not in path
        for operation in methods.values():
            for parameter in operation.get("parameters", ()):
                assert parameter["name"] not in ("state", "uid"), path


def test_no_list_has_a_second_word_for_a_thing_or_offers_what_is_not_there(description: dict[str, Any]) -> None:
    offered = {
        where: words for where, words in enums(description) if not where.endswith(("ResourceType", "TaskStatus"))
    }
    assert offered
    for where, words in offered.items():
        assert not {word.lower() for word in words} & FOREIGN_WORDS, where


def test_every_code_of_an_error_is_lower_case() -> None:
    for kind in all_errors():
        assert re.fullmatch(r"[a-z][a-z0-9]*(_[a-z0-9]+)*", kind.code), f"{kind.__name__}: {kind.code}"
    assert all(re.fullmatch(r"[a-z_]{1,16}", code) for code in ErrorCode)


def test_a_word_that_is_shown_leads_back_to_the_value_that_is_stored() -> None:
    assert words_of(ExecutionState) == [
        "PENDING", "RUNNING", "SUCCEEDED", "FAILED", "TIMED_OUT", "CANCELED", "INTERRUPTED",
    ]  # fmt: skip
    assert [stored(ExecutionState, shown(state)) for state in ExecutionState] == list(ExecutionState)
    with pytest.raises(ValueError, match="none of PENDING"):
        stored(ExecutionState, "success")


def test_the_client_has_the_same_names() -> None:
    for name in client.__all__:
        fields = getattr(getattr(client, name), "__dataclass_fields__", {})
        assert not {field for field in fields if field in ("uid", "state") or field.endswith("_uid")}, name


def test_the_command_line_offers_the_same_words() -> None:
    for path, option in _options(typer.main.get_command(commands), ()):
        words = set((option.metavar or "").strip("<>").lower().split("|"))
        assert not words & FOREIGN_WORDS, f"{' '.join(path)} {option.opts}"
        assert "--state" not in option.opts, path


def _options(command: Any, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any]]:
    command = getattr(command, "loaded", command)
    for name, inner in getattr(command, "commands", {}).items():
        yield from _options(inner, (*path, name))
    for option in command.params:
        yield path, option


def test_filters_offer_the_kinds_of_things_that_the_product_writes_about() -> None:
    source = "\n".join(page.read_text() for page in (ROOT / "src").rglob("*.py") if page.name != "model.py")
    written = {ResourceType[name] for name in re.findall(r"ResourceType\.([A-Z_]+)", source)}
    assert written == set(OWN_RESOURCE_TYPES)
