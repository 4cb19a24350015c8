"""If-Match: what was not seen is not overwritten."""

import httpx2
import pytest

from headrace.edge.errors import InvalidIfMatch
from headrace.edge.etags import etag, parse_if_match


@pytest.mark.parametrize(("header", "version"), [(None, None), ("*", None), ('"7"', 7), (' "0" ', 0)])
def test_what_if_match_asks_for(header: str | None, version: int | None) -> None:
    assert parse_if_match(header) == version


@pytest.mark.parametrize("header", ["7", 'W/"7"', '"7", "8"', '"x"', '"-1"', '"07"', "", '"' + "9" * 40 + '"', '"٧"'])
def test_what_is_no_entity_tag_of_ours_is_refused(header: str) -> None:
    with pytest.raises(InvalidIfMatch):
        parse_if_match(header)


def test_a_version_and_its_tag_are_one() -> None:
    assert parse_if_match(etag(42)) == 42


async def test_a_stale_version_fails_and_a_fresh_one_passes(client: httpx2.AsyncClient) -> None:
    tag = (await client.get("/v1/me")).headers["ETag"]
    body = {"name": "a"}
    assert (await client.put("/v1/me", json=body, headers={"If-Match": tag})).json() == {"expected": 7}
    assert (await client.put("/v1/me", json=body)).json() == {"expected": None}
    stale = await client.put("/v1/me", json=body, headers={"If-Match": '"6"'})
    assert (stale.status_code, stale.json()["code"]) == (412, "precondition_failed")
    weak = await client.put("/v1/me", json=body, headers={"If-Match": 'W/"7"'})
    assert (weak.status_code, weak.json()["code"]) == (400, "invalid_if_match")
