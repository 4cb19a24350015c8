"""Locks that outlive a transaction: for one thing at a time, over any number of machines.

>>> async with locks.hold(db, "reports/monthly", ttl=timedelta(seconds=30), purpose="closing June") as lock:
...     await write(report, fence=lock.fence)

``hold`` is for code with a database; ``acquire``, ``renew`` and ``release`` for what keeps the token itself.
"""
