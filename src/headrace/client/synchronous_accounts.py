"""Users and API keys for programs without an event loop; their verbs are described at the twins."""

from collections.abc import Iterator, Sequence
from datetime import datetime

from headrace.client.accounts import ApiKey, ApiKeys, User, Users
from headrace.client.synchronous_schedules import Loop


class SyncUsers:
    def __init__(self, loop: Loop, users: Users) -> None:
        self._loop = loop
        self._users = users

    def create(
        self,
        username: str,
        *,
        password: str | None = None,
        email: str | None = None,
        role: str = "USER",
        key: str | None = None,
    ) -> User:
        return self._loop.run(self._users.create(username, password=password, email=email, role=role, key=key))

    def get(self, user_id: str) -> User:
        return self._loop.run(self._users.get(user_id))

    def suspend(self, user_id: str, *, version: int | None = None) -> User:
        return self._loop.run(self._users.suspend(user_id, version=version))

    def reinstate(self, user_id: str, *, version: int | None = None) -> User:
        return self._loop.run(self._users.reinstate(user_id, version=version))

    def set_role(self, user_id: str, role: str, *, version: int | None = None) -> User:
        return self._loop.run(self._users.set_role(user_id, role, version=version))

    def reset_password(self, user_id: str, *, password: str | None = None, version: int | None = None) -> User:
        return self._loop.run(self._users.reset_password(user_id, password=password, version=version))

    def list(
        self, *, username: str | None = None, status: str | None = None, role: str | None = None
    ) -> Iterator[User]:
        return self._loop.iterate(self._users.list(username=username, status=status, role=role))


class SyncApiKeys:
    def __init__(self, loop: Loop, api_keys: ApiKeys) -> None:
        self._loop = loop
        self._api_keys = api_keys

    def create(
        self, name: str, scopes: Sequence[str], *, expires_at: datetime | None = None, key: str | None = None
    ) -> ApiKey:
        return self._loop.run(self._api_keys.create(name, scopes, expires_at=expires_at, key=key))

    def get(self, api_key_id: str) -> ApiKey:
        return self._loop.run(self._api_keys.get(api_key_id))

    def revoke(self, api_key_id: str) -> None:
        self._loop.run(self._api_keys.revoke(api_key_id))

    def list(self) -> Iterator[ApiKey]:
        return self._loop.iterate(self._api_keys.list())
