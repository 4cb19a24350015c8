"""Users, as the API answers administrators."""

from collections.abc import Mapping
from typing import Any

from headrace.access import Role
from headrace.accounts import administration
from headrace.accounts.model import User, UserStatus
from headrace.accounts.schemas import AdminUserIn, RoleIn, UserOut, UserWithPasswordOut
from headrace.cli.direct.answering import Handler, Request

_PAGE = 200


async def list_users(request: Request) -> list[Any]:
    asked = request.params
    found: list[User] = []
    mark = None
    async with request.begin() as tx:
        while len(found) < request.limit:
            size = min(_PAGE, request.limit - len(found))
            page = await administration.list_users(
                tx,
                request.caller.who,
                username=asked.get("username"),
                status=UserStatus(asked["status"]) if "status" in asked else None,
                role=Role(asked["role"]) if "role" in asked else None,
                older_than=mark,
                limit=size,
            )
            found += page
            if len(page) < size:
                break
            mark = (found[-1].created_at, found[-1].id)
    return [_shown(user) for user in found]


async def get_user(request: Request) -> Any:
    async with request.begin() as tx:
        return _shown(await administration.get_user(tx, request.caller.who, request.path["user_id"]))


async def create_user(request: Request) -> Any:
    from headrace.accounts.passwords import generate
    from headrace.accounts.registration import prepare, register

    body = AdminUserIn.model_validate(request.body)
    chosen = body.password.get_secret_value() if body.password else None
    async with request.session.accounts() as known:
        password = chosen or generate(known.config.passwords)
        new = await prepare(
            known, username=body.username, password=password, email=body.email, role=body.role, by_operator=True
        )
        async with request.begin() as tx:
            user = await register(tx, request.caller.who, new, welcomes=known.welcomes)
    made = UserWithPasswordOut(user=UserOut.of(user), password=None if chosen else password)
    return made.model_dump(mode="json")


async def suspend_user(request: Request) -> Any:
    async with request.begin() as tx:
        return _shown(await administration.suspend(tx, request.caller.who, request.path["user_id"]))


async def reinstate_user(request: Request) -> Any:
    async with request.begin() as tx:
        return _shown(await administration.reinstate(tx, request.caller.who, request.path["user_id"]))


async def set_user_role(request: Request) -> Any:
    role = RoleIn.model_validate(request.body).role
    async with request.begin() as tx:
        return _shown(await administration.set_role(tx, request.caller.who, request.path["user_id"], role))


def _shown(user: User) -> Any:
    return UserOut.of(user).model_dump(mode="json")


HANDLERS: Mapping[str, Handler] = {
    "GET /v1/admin/users": list_users,
    "POST /v1/admin/users": create_user,
    "GET /v1/admin/users/{user_id}": get_user,
    "POST /v1/admin/users/{user_id}/suspend": suspend_user,
    "POST /v1/admin/users/{user_id}/reinstate": reinstate_user,
    "POST /v1/admin/users/{user_id}/role": set_user_role,
}
