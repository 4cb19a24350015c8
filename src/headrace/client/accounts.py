"""Users and API keys, for programs with an event loop: ``client.users`` and ``client.api_keys``."""

from collections.abc import AsyncGenerator, Mapping, Sequence
from datetime import datetime
from typing import Any

from headrace.client.generated.answers import ApiKey, User
from headrace.client.verbs import Verbs, given, part

_USERS = "/v1/admin/users"
_KEYS = "/v1/api-keys"


def _with_password(data: Mapping[str, Any]) -> User:
    return User.of({**data["user"], "password": data["password"]})


class Users(Verbs):
    """Accounts, for administrators only."""

    async def create(
        self,
        username: str,
        *,
        password: str | None = None,
        email: str | None = None,
        role: str = "USER",
        key: str | None = None,
    ) -> User:
        """Create an account. Without a ``password`` one is generated, which is shown only once."""
        body = given({"username": username, "password": password, "email": email, "role": role})
        return _with_password(await self._create(_USERS, body, key))

    async def get(self, user_id: str) -> User:
        """One user."""
        return User.of(await self._get(f"{_USERS}/{part(user_id)}"))

    async def suspend(self, user_id: str, *, version: int | None = None) -> User:
        """Suspend a user: sessions end and API keys stop working at once."""
        return User.of(await self._change(f"{_USERS}/{part(user_id)}/suspend", version, safe=True))

    async def reinstate(self, user_id: str, *, version: int | None = None) -> User:
        """Reinstate a suspended user."""
        return User.of(await self._change(f"{_USERS}/{part(user_id)}/reinstate", version, safe=True))

    async def set_role(self, user_id: str, role: str, *, version: int | None = None) -> User:
        """Set a user's role: ``ADMIN`` or ``USER``."""
        path = f"{_USERS}/{part(user_id)}/role"
        return User.of(await self._change(path, version, safe=True, body={"role": role}))

    async def reset_password(self, user_id: str, *, password: str | None = None, version: int | None = None) -> User:
        """Set a user's password; all their sessions end. A generated one is shown only once."""
        path = f"{_USERS}/{part(user_id)}/password"
        body = given({"password": password})
        return _with_password(await self._change(path, version, safe=False, body=body))

    async def disable_second_factor(self, user_id: str) -> User:
        """Turn a user's second factor off, when they lost their phone and their recovery codes."""
        path = f"{_USERS}/{part(user_id)}/second-factor"
        return User.of(await self._connection.request("DELETE", path, safe=True))

    async def list(
        self, *, username: str | None = None, status: str | None = None, role: str | None = None
    ) -> AsyncGenerator[User, None]:
        """All users, newest first; by ``username`` at most one."""
        async for item in self._pages(_USERS, {"username": username, "status": status, "role": role}):
            yield User.of(item)


class ApiKeys(Verbs):
    """API keys of the caller."""

    async def create(
        self, name: str, scopes: Sequence[str], *, expires_at: datetime | None = None, key: str | None = None
    ) -> ApiKey:
        """Create a key, which is shown only once. Requires a session token (``POST /v1/auth/login``) instead of an API
        key."""
        body = given({"name": name, "scopes": sorted(scopes), "expires_at": expires_at})
        return ApiKey.of(await self._create(_KEYS, body, key))

    async def get(self, api_key_id: str) -> ApiKey:
        """One key, without the key itself."""
        return ApiKey.of(await self._get(f"{_KEYS}/{part(api_key_id)}"))

    async def revoke(self, api_key_id: str) -> None:
        """Revoke a key."""
        await self._connection.request("DELETE", f"{_KEYS}/{part(api_key_id)}", safe=False)

    async def list(self) -> AsyncGenerator[ApiKey, None]:
        """Unrevoked keys, newest first."""
        async for item in self._pages(_KEYS):
            yield ApiKey.of(item)
