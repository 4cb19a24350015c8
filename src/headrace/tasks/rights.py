"""Rights to submit tasks, by type.

A type declares them: ``"admins"``, ``"users"``, or a scope, ``"tasks:submit:NAME"``, which an API key must have by
that name, so that a general key does not suffice; users with a session may. They are data in ``task_types``: every way
to submit checks them, ``headrace.submit`` in SQL too.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from headrace import ids
from headrace.access import SUBMIT_SCOPE, Caller, Scope, ScopeMissing
from headrace.database import Tx
from headrace.tasks.errors import TypeDenied

ADMINS, USERS = "admins", "users"
ALLOWED = '"admins", "users", or a scope "tasks:submit:NAME"'

_RULE = re.compile(rf"{ADMINS}|{USERS}|{SUBMIT_SCOPE}[A-Za-z][A-Za-z0-9_.:-]{{0,200}}")


def is_rule(text: object) -> bool:
    return isinstance(text, str) and _RULE.fullmatch(text) is not None


@dataclass(frozen=True, slots=True)
class Rights:
    """The rights of a submitter. ``scopes`` is None without the narrower scopes of an API key."""

    admin: bool = False
    scopes: frozenset[str] | None = None
    any_type: bool = True  # of a key: whether it may submit types that it does not name

    @classmethod
    def of(cls, caller: Caller, *, through: Scope = Scope.TASKS_WRITE) -> "Rights":
        """A caller's; ``through`` is what lets a key do it at all. One that names types for it is held to them."""
        named = caller.type_scopes
        any_type = caller.may(Scope.TASKS_WRITE) or (through is not Scope.TASKS_WRITE and not named)
        admin = caller.is_admin or caller.user_id == ids.SYSTEM_USER
        return cls(admin, None if caller.scopes is None else named, any_type)

    def check(self, type_name: str, rule: str) -> None:
        """``ScopeMissing`` or ``TypeDenied`` for a type that these rights do not cover."""
        if self.scopes is not None:
            named = rule in self.scopes or any(_names(scope, type_name) for scope in self.scopes)
            if not named and (not self.any_type or (rule.startswith(SUBMIT_SCOPE) and not self.admin)):
                wanted = rule if rule.startswith(SUBMIT_SCOPE) else f"{SUBMIT_SCOPE}{type_name}"
                raise ScopeMissing(f"This API key was not given the scope {wanted}.", scope=wanted)
        if rule == ADMINS and not self.admin:
            raise TypeDenied(
                f"{type_name} may be submitted by administrators alone. To open it, declare it with "
                'submit="users", or with a scope.',
                type=type_name,
            )


def _names(scope: str, type_name: str) -> bool:
    named = scope.removeprefix(SUBMIT_SCOPE)
    return type_name.startswith(named[:-1]) if named.endswith("*") else type_name == named


TRUSTED = Rights(admin=True)
"""A program that reaches the database, or a package that has checked for itself."""
PERSON = Rights()

IS_ADMIN = "SELECT EXISTS (SELECT FROM headrace.users WHERE id = $1 AND role = 'ADMIN')"


async def rights_of_user(tx: Tx, user_id: str, rules: Iterable[str]) -> Rights:
    """The rights of a user for whom another party submits, as far as these types require them."""
    if user_id == ids.SYSTEM_USER:
        return TRUSTED
    if ADMINS not in set(rules):
        return PERSON  # nothing to look up
    return TRUSTED if await tx.fetchval(IS_ADMIN, user_id) else PERSON
