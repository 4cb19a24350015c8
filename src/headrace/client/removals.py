"""Watermark removals: ``client.removals``."""

from __future__ import annotations  # a method is named list

from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

from headrace.client.generated.answers import File, Quote, Removal, Task
from headrace.client.verbs import Verbs, given, part


@dataclass(frozen=True, slots=True)
class NewRemoval:
    """The options of an order for each file; omitted ones have the API's defaults.

    ``rights`` is your right to the file: OWNER, LICENSEE or AUTHORIZED. It is stored with the file's hash and the user.
    """

    rights: str = "OWNER"
    statement: str | None = None
    quality: str = "STANDARD"
    mode: str = "AUTO"
    output_format: str | None = None
    hints: Sequence[Mapping[str, Any]] = ()
    mask_asset_id: str | None = None
    candidates: Sequence[int] = ()
    pages: Sequence[tuple[int, int]] = ()
    break_signature: bool = False
    accept_poor: bool = False
    ai_label_reason: str | None = None
    title: str | None = None
    same_mark: bool = False
    password: str | None = field(default=None, repr=False)

    def as_json(self, asset_ids: Sequence[str], *, priced_only: bool = False) -> dict[str, Any]:
        """The request body; ``priced_only`` omits options without effect on the price."""
        apart = {"rights", "statement"} | ({"title"} if priced_only else set())
        options = {each.name: _plain(getattr(self, each.name)) for each in fields(self) if each.name not in apart}
        body = {"asset_ids": list(asset_ids), **given(options)}
        return body if priced_only else {**body, "rights": given({"basis": self.rights, "statement": self.statement})}


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


class Removals(Verbs):
    """Removal orders: quote, order, read."""

    async def quote(self, asset_ids: Sequence[str], wanted: NewRemoval | None = None) -> Quote:
        """The present price of an order. Holds no units."""
        body = (wanted or NewRemoval()).as_json(asset_ids, priced_only=True)
        return Quote.of(await self._connection.request("POST", "/v1/removals/quote", json=body, safe=True))

    async def order(
        self, asset_ids: Sequence[str], wanted: NewRemoval | None = None, *, key: str | None = None
    ) -> Sequence[Removal]:
        """Order one removal for each file, all or none. Its id is a task id: ``client.wait`` waits for it, and
        ``client.files.download_result`` has the file."""
        answer = await self._create("/v1/removals", (wanted or NewRemoval()).as_json(asset_ids), key)
        return [Removal.of(item) for item in answer["items"]]

    async def detect(
        self,
        asset_id: str,
        hints: Sequence[Mapping[str, Any]] = (),
        *,
        password: str | None = None,
        key: str | None = None,
    ) -> Task:
        """Detect watermarks, free of charge: the result of the succeeded task has the candidates."""
        body = {"hints": list(hints), **given({"password": password})}
        return Task.of(await self._create(f"/v1/assets/{part(asset_id)}/detect", body, key))

    async def get(self, removal_id: str) -> Removal:
        """One removal with its candidates."""
        return Removal.of(await self._get(f"/v1/removals/{part(removal_id)}"))

    async def return_result(self, removal_id: str) -> Removal:
        """Return a result that is not good, within 24 hours: its units come back. Repeating it changes nothing."""
        path = f"/v1/removals/{part(removal_id)}/return"
        return Removal.of(await self._change(path, None, safe=True))

    async def not_ordered(self) -> Sequence[File]:
        """Uploads among your last fifty files without a removal order."""
        return [File.of(item) for item in (await self._get("/v1/removals/not-ordered"))["items"]]

    async def comparison(self, removal_id: str) -> bytes:
        """A comparison of before (left) and after (right), as JPEG."""
        return await self._bytes(f"/v1/tasks/{part(removal_id)}/compare")

    async def preview(self, removal_id: str) -> bytes:
        """A preview of the result, as WebP."""
        return await self._bytes(f"/v1/tasks/{part(removal_id)}/preview")

    async def held_back(self, removal_id: str) -> bytes:
        """A preview of the result that ``accept_poor`` would buy: before and after as a small JPEG. Available if
        ``held_back`` of the failed removal is set."""
        return await self._bytes(f"/v1/removals/{part(removal_id)}/held-back")

    async def _bytes(self, path: str) -> bytes:
        async with self._connection.stream_bytes(path, headers={}) as response:
            return await response.aread()

    async def list(
        self, *, batch_id: str | None = None, asset_id: str | None = None, user_id: str | None = None
    ) -> AsyncGenerator[Removal, None]:
        """Your removals, newest first."""
        asked = {"batch_id": batch_id, "asset_id": asset_id, "user_id": user_id}
        async for item in self._pages("/v1/removals", asked):
            yield Removal.of(item)
