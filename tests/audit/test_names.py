"""Document 001's guide for new actions and resource types, held against the lists. A-02."""

import re
from enum import StrEnum

import pytest

from headrace.audit import Action, ActorType, PrincipalType, ResourceType

# Nobody can tell from these what was done, or to what: 001 names "modified", the others are of the same kind.
TOO_BROAD = {
    *("modified", "changed", "edited", "saved", "set", "handled", "processed", "managed", "performed", "executed"),
    *("accessed", "used", "action", "operation", "event", "other", "misc", "unknown", "any", "all"),
    *("resource", "object", "item", "entity", "thing", "data", "record", "system"),
}
CAMEL_CASE = re.compile(r"[a-z][a-z0-9]*(?:[A-Z][a-z0-9]+)*")
# What belongs to a wider kind carries its name in front, wherever the wider one is listed, too.
HIERARCHY = {
    "database": {"databaseInstance", "databaseUser"},
}
# Longer names whose first word is another kind by chance, not a part of it.
NOT_A_PART: set[str] = set()


@pytest.mark.parametrize("listed", [Action, ResourceType, PrincipalType])
def test_names_are_in_camel_case(listed: type[StrEnum]) -> None:
    assert [name for name in listed if not CAMEL_CASE.fullmatch(name)] == []


@pytest.mark.parametrize("listed", [Action, ResourceType])
def test_no_name_is_too_broad(listed: type[StrEnum]) -> None:
    assert TOO_BROAD & set(listed) == set()


def test_every_action_is_told_after_it_was_done() -> None:
    """*created* and not *create*; what is not a participle is the name of an event that people know."""
    others = {name for name in Action if not name.endswith("ed")}
    assert others == {Action.READ, Action.FORCE_PUSH, Action.LOGIN, Action.LOGOUT}


def test_a_part_is_named_after_the_whole() -> None:
    parts = {
        whole: {name for name in ResourceType if re.match(rf"{whole}[A-Z]", name)} - NOT_A_PART
        for whole in map(str, ResourceType)
    }
    assert {whole: names for whole, names in parts.items() if names} == HIERARCHY


@pytest.mark.parametrize("listed", [Action, ResourceType, PrincipalType, ActorType])
def test_a_member_is_spelt_as_its_value(listed: type[StrEnum]) -> None:
    def plain(text: str) -> str:
        return text.replace("_", "").lower()

    assert [member for member in listed if plain(member.name) != plain(member.value)] == []
