"""Distributed locks with leases, which outlive a transaction, over any number of machines.

>>> async with locks.hold(db, "reports/monthly", ttl=timedelta(seconds=30), purpose="closing June") as lock:
...     await write(report, fence=lock.fence)

``hold`` is for code with a database; ``acquire``, ``renew`` and ``release`` are for callers that keep the token.
"""
