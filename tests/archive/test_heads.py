"""Heads of the trail, kept outside the database: an end that was cut off is noticed. A-03."""

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from headrace.archive.heads import FOLDER, BucketHeads, heads_in
from headrace.audit import seals, verifying
from headrace.audit.findings import Flaw
from headrace.audit.heads import KeptHeads, find_foreign
from headrace.audit.sealing import Sealed, Sealer
from headrace.audit.signing import SigningKey
from headrace.audit.verifying import VerifyMode
from headrace.database import Database
from headrace.storage import StorageConfig, StorageUnreachable
from tests.archive import bucket
from tests.audit.conftest import NOW, Fill, Tamper, fill, small_batches, tamper  # noqa: F401 - fixtures
from tests.audit.tampering import KEY

pytestmark = pytest.mark.usefixtures("small_batches")

CUT_OFF = (
    "DELETE FROM headrace.audit_leaves WHERE seal > 1",
    "DELETE FROM headrace.audit_seals WHERE number > 1",
    "DELETE FROM headrace.audit_events WHERE seq > 8",
)
EMPTY = (
    "DELETE FROM headrace.audit_leaves",
    "DELETE FROM headrace.audit_seals",
    "DELETE FROM headrace.audit_events",
)
SIGNED = frozenset({KEY.public})


@pytest.fixture(params=["folder", "bucket"])
def heads(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[KeptHeads]:
    """Both ways to keep them."""
    if request.param == "folder":
        yield heads_in(StorageConfig(f"file://{tmp_path}"))
        return
    with bucket.running() as remote:
        options = {"endpoint": remote.url, "region": "us-east-1"}
        keys = {"access_key_id": bucket.ACCESS_KEY, "secret_access_key": bucket.SECRET_KEY}
        yield heads_in(StorageConfig("s3://months/headrace", options | keys))


async def sealed(db: Database, fill: Fill, heads: KeptHeads | None) -> None:  # noqa: F811
    await fill(20)
    assert await Sealer(db, KEY, heads=heads).run_once() == Sealed(seals=3, events=20)


@pytest.mark.parametrize("keys", [SIGNED, frozenset[bytes]()])
@pytest.mark.parametrize("attack", [CUT_OFF, EMPTY])
async def test_an_end_that_was_cut_off_is_noticed(
    db: Database,
    fill: Fill,  # noqa: F811
    tamper: Tamper,  # noqa: F811
    heads: KeptHeads,
    attack: tuple[str, ...],
    keys: frozenset[bytes],
) -> None:
    await sealed(db, fill, heads)
    against = VerifyMode(keys=keys, heads=heads)
    whole = await verifying.verify(db, against=against)
    assert (whole.finding, whole.heads, whole.numbers_without_event) == (None, 1, 0)
    for sql in attack:
        await tamper(sql)
    found = (await verifying.verify(db, against=against)).finding
    assert found is not None
    assert (found.flaw, found.seal) == (Flaw.CUT, 3)
    # Sealing goes on with the key, over what is left; what was kept before stays and contradicts it.
    await fill(30, start=NOW.replace(day=22))
    await Sealer(db, KEY, heads=heads).run_once()
    found = (await verifying.verify(db, against=against)).finding
    assert found is not None
    assert (found.flaw, found.seal) == (Flaw.HEAD, 3)


async def test_the_trail_of_another_database_is_noticed_by_its_oldest_heads(
    db: Database,
    fill: Fill,  # noqa: F811
    tamper: Tamper,  # noqa: F811
    heads: KeptHeads,
) -> None:
    async def foreign() -> int | None:
        async with db.transaction(readonly=True) as tx:
            head = await find_foreign(tx, heads)
        return None if head is None else head.number

    assert await foreign() is None
    await sealed(db, fill, heads)
    assert await foreign() is None
    for sql in EMPTY:
        await tamper(sql)
    assert await foreign() == 3
    await fill(30, start=NOW.replace(day=22))
    await Sealer(db, KEY, heads=heads).run_once()
    assert await foreign() == 3


async def test_without_heads_a_key_does_not_say_that_all_is_well(
    db: Database,
    fill: Fill,  # noqa: F811
    tamper: Tamper,  # noqa: F811
    heads: KeptHeads,
) -> None:
    await sealed(db, fill, None)
    found = (await verifying.verify(db, against=VerifyMode(keys=SIGNED, heads=heads))).finding
    assert found is not None
    assert (found.flaw, "No signed head" in found.message) == (Flaw.HEAD, True)
    assert (await verifying.verify(db, against=VerifyMode(heads=heads))).finding is None
    assert await Sealer(db, KEY, heads=heads).run_once() == Sealed(), "nothing to seal, and yet the head is kept"
    assert (await verifying.verify(db, against=VerifyMode(keys=SIGNED, heads=heads))).finding is None
    for sql in EMPTY:
        await tamper(sql)
    found = (await verifying.verify(db, against=VerifyMode(keys=SIGNED))).finding
    assert found is not None
    assert found.message == "The trail is empty, although numbers up to 20 were drawn for events."


async def test_numbers_at_the_end_that_no_event_has_are_told(
    db: Database,
    fill: Fill,  # noqa: F811
    tamper: Tamper,  # noqa: F811
) -> None:
    await fill(20)
    await tamper("DELETE FROM headrace.audit_events WHERE seq > 15")
    assert (await verifying.verify(db)).numbers_without_event == 5


async def test_where_a_key_is_known_a_head_that_it_has_not_signed_is_no_alarm(
    db: Database,
    fill: Fill,  # noqa: F811
    heads: KeptHeads,
) -> None:
    await sealed(db, fill, heads)
    async with db.transaction() as tx:
        last = await seals.find_last(tx)
    assert last is not None
    stranger = SigningKey(bytes(32))
    made_up = replace(last, number=99, chain=bytes(32), signed_by=stranger.public, signature=stranger.sign(bytes(32)))
    await heads.keep(made_up)
    await heads.keep(replace(made_up, signed_by=KEY.public, number=98))
    await heads.keep(replace(made_up, signed_by=None, signature=None, number=97))
    assert (await verifying.verify(db, against=VerifyMode(keys=SIGNED, heads=heads))).finding is None
    found = (await verifying.verify(db, against=VerifyMode(heads=heads))).finding
    assert found is not None
    assert found.flaw is Flaw.CUT, "without a key everything is believed"


async def test_many_processes_keep_one_head(db: Database, fill: Fill, tmp_path: Path) -> None:  # noqa: F811
    heads = heads_in(StorageConfig(f"file://{tmp_path}"))
    await fill(5)
    await asyncio.gather(*(Sealer(db, KEY, heads=heads).run_once() for _ in range(4)))
    await Sealer(db, KEY, heads=heads).run_once()
    (file,) = [path for path in (tmp_path / FOLDER).rglob("*") if path.is_file()]
    assert file.stat().st_mode & 0o077 == 0
    assert len(await heads.list_heads()) == 1


async def test_sealing_goes_on_where_heads_cannot_be_kept(db: Database, fill: Fill, tmp_path: Path) -> None:  # noqa: F811
    (tmp_path / "file").touch()
    heads = heads_in(StorageConfig(f"file://{tmp_path / 'file'}"))
    sealer = Sealer(db, KEY, heads=heads)
    await fill(5)
    assert await sealer.run_once() == Sealed(seals=1, events=5)
    with pytest.raises(StorageUnreachable):
        await verifying.verify(
            db, against=VerifyMode(keys=SIGNED, heads=BucketHeads(StorageConfig(f"file://{tmp_path}/file")))
        )
    (tmp_path / "file").unlink()
    assert await sealer.run_once() == Sealed()
    assert len(await heads.list_heads()) == 1, "the next round tries again"


async def test_a_copy_under_another_number_raises_no_false_alarm(
    db: Database,
    fill: Fill,  # noqa: F811
    tmp_path: Path,
) -> None:
    heads = heads_in(StorageConfig(f"file://{tmp_path}"))
    await sealed(db, fill, heads)
    (head,) = await heads.list_heads()
    genuine = tmp_path / head.name
    genuine.with_name(genuine.name.replace(f"{head.number:012}", f"{999:012}")).write_bytes(genuine.read_bytes())
    assert (await verifying.verify(db, against=VerifyMode(keys=SIGNED, heads=heads))).finding is None
