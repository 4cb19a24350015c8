"""``client.removals`` for programs without an event loop; its verbs are described at its twin."""

from __future__ import annotations  # a verb is called list

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from headrace.client.files import File
from headrace.client.model import Task
from headrace.client.removals import NewRemoval, Quote, Removal, Removals
from headrace.client.synchronous_schedules import Loop


class SyncRemovals:
    def __init__(self, loop: Loop, removals: Removals) -> None:
        self._loop = loop
        self._removals = removals

    def quote(self, asset_ids: Sequence[str], wanted: NewRemoval | None = None) -> Quote:
        return self._loop.run(self._removals.quote(asset_ids, wanted))

    def order(
        self, asset_ids: Sequence[str], wanted: NewRemoval | None = None, *, key: str | None = None
    ) -> Sequence[Removal]:
        return self._loop.run(self._removals.order(asset_ids, wanted, key=key))

    def detect(
        self,
        asset_id: str,
        hints: Sequence[Mapping[str, Any]] = (),
        *,
        password: str | None = None,
        key: str | None = None,
    ) -> Task:
        return self._loop.run(self._removals.detect(asset_id, hints, password=password, key=key))

    def get(self, removal_id: str) -> Removal:
        return self._loop.run(self._removals.get(removal_id))

    def not_ordered(self) -> Sequence[File]:
        return self._loop.run(self._removals.not_ordered())

    def comparison(self, removal_id: str) -> bytes:
        return self._loop.run(self._removals.comparison(removal_id))

    def preview(self, removal_id: str) -> bytes:
        return self._loop.run(self._removals.preview(removal_id))

    def held_back(self, removal_id: str) -> bytes:
        return self._loop.run(self._removals.held_back(removal_id))

    def list(
        self, *, batch_id: str | None = None, asset_id: str | None = None, user_id: str | None = None
    ) -> Iterator[Removal]:
        return self._loop.iterate(self._removals.list(batch_id=batch_id, asset_id=asset_id, user_id=user_id))
