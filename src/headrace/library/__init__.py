"""Headrace inside a program of your own: submit in your transactions, run a worker on your event loop.

>>> async with Headrace("postgresql://…", registry) as hr:
...     async with pool.acquire() as connection, connection.transaction():
...         await connection.execute("INSERT INTO orders …")
...         await hr.submit("order.ship", {"order": 7}, connection=connection)
"""
