"""Verifies the trail from where the last verification ended."""

from dataclasses import replace
from datetime import datetime, timedelta

from headrace.audit import verified_head
from headrace.audit.verifying import Report, Verification, Verified, VerifyMode
from headrace.database import Database


async def verify_further(
    db: Database,
    key: bytes | None,
    *,
    whole: bool = False,
    against: VerifyMode | None = None,
    report: Report = lambda *_: None,
) -> Verified:
    """Recompute the seals after the verified head, and some before it; then move the head.

    The ``key`` protects the head. All seals are recomputed if ``whole``, without a key, or if no head of this key is
    there.
    """
    against = against or VerifyMode()
    head = None
    if key is not None and not whole:
        async with db.transaction(readonly=True) as tx:
            head = await verified_head.find(tx, key, keys=against.keys)
    verification = Verification(db, None, against, report, head)
    verified = await verification.run()
    if key is not None and verified.finding is None and (new := await verification.new_head()) is not None:
        async with db.transaction() as tx:
            await verified_head.store(tx, key, new)
        verified = replace(verified, whole_at=new.whole_at)
    return verified


WHOLE_EVERY = timedelta(days=7)


async def verify_regularly(db: Database, key: bytes | None, *, against: VerifyMode) -> Verified:
    """``verify_further``, and all of it if that was done longer than a week ago, give or take an hour."""
    whole = key is None
    if key is not None:
        async with db.transaction(readonly=True) as tx:
            head = await verified_head.find(tx, key, keys=against.keys)
            now: datetime = await tx.fetchval("SELECT now()")
        whole = head is None or now - head.whole_at > WHOLE_EVERY - timedelta(hours=1)
    return await verify_further(db, key, whole=whole, against=against)
