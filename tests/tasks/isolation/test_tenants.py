"""A child that has served one tenant serves no other: what a file leaves behind in it meets nobody else's."""

import asyncio

from headrace.tasks.isolation.single import Standalone
from tests.tasks.isolation.program import registry
from tests.tasks.isolation.stand import eventually, is_gone


async def test_a_child_serves_one_tenant_and_a_fresh_one_is_there_for_the_next() -> None:
    who = registry.get("who")

    async def pid(processes: Standalone, tenant: str) -> int:
        found: int = (await processes.run(who, None, tenant=tenant))["pid"]
        return found

    async with Standalone(size=1) as processes:
        hers = [await pid(processes, "ada") for _ in range(3)]
        assert len(set(hers)) == 1
        his = await pid(processes, "bob")
        assert his not in hers
        assert await eventually(lambda: is_gone(hers[0]))
        # Nothing more comes of him: a fresh one starts before anybody asks.
        processes.forget("bob")
        assert await eventually(lambda: is_gone(his) and len(processes.pids) == 1)
        assert await pid(processes, "ada") in processes.pids

    async with Standalone(size=2, spare=1) as processes:  # one is ready for whoever comes next
        hers = [await pid(processes, "ada")]
        assert await eventually(lambda: len(processes.pids) == 2)
        (ready,) = processes.pids - set(hers)
        assert await pid(processes, "bob") == ready

    async with Standalone(size=2) as processes:  # all at once, more tenants than children
        served: dict[int, set[str]] = {}

        async def serve(tenant: str) -> None:
            served.setdefault(await pid(processes, tenant), set()).add(tenant)

        await asyncio.gather(*(serve(tenant) for tenant in ("ada", "bob", "eve") * 4))
        assert all(len(tenants) == 1 for tenants in served.values()), served
        assert len(processes.pids) <= 2
