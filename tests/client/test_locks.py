"""``client.locks.hold`` against the real API: kept while the block runs, and its loss raised in the block. S-13."""

import asyncio
import threading
from concurrent import futures
from datetime import timedelta
from typing import Any, cast

import httpx2
import pytest

from headrace import leases
from headrace.client import Client, SyncClient
from headrace.client.errors import LockHeld, LockLost
from headrace.locks import routes
from headrace.locks.taking import retry_while_held
from tests.client.conftest import ADMIN_KEY, IMPATIENT
from tests.locks.blocks import NEVER, lose, take_turns

SHORT = timedelta(seconds=1)  # the shortest that the server gives
MINUTE = timedelta(minutes=1)


async def states(client: Client) -> list[str]:
    return [lock.status async for lock in client.locks.list()]


async def test_it_is_renewed_while_the_block_runs_and_let_go_at_its_end(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(leases, "RENEW_AFTER_RATIO", 1 / 200)  # often, and never late on a busy machine
    ends: set[object] = set()
    async with client.locks.hold("k", ttl=MINUTE, purpose="a long report") as lock, asyncio.timeout(60):
        assert (lock.fence, lock.purpose, lock.token is None) == (1, "a long report", False)
        while len(ends) < 3:
            with pytest.raises(LockHeld, match="holds this lock until"):
                async with client.locks.hold("k"):
                    pytest.fail("two at once")
            [shown] = [each async for each in client.locks.list()]
            ends.add(shown.expires_at)
    assert await states(client) == ["RELEASED"]


async def test_those_who_wait_come_one_after_the_other(client: Client) -> None:
    # The last waits for longer than the time that it is given.
    fences = await take_turns(lambda: client.locks.hold("k", ttl=SHORT, wait=None), blocks=4, seconds=0.4)
    assert fences == [1, 2, 3, 4]


async def test_who_waits_in_vain_is_told_who_has_it(client: Client) -> None:
    async with client.locks.hold("k", holder="the other"):
        with pytest.raises(LockHeld, match="the other"):
            async with client.locks.hold("k", wait=timedelta(seconds=0.1)):
                pytest.fail("two at once")


async def test_what_is_taken_away_is_noticed_and_raised_in_the_block(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(leases, "RENEW_AFTER_RATIO", 1 / 200)  # noticed soon, and never lost for being slow
    with pytest.raises(LockLost):
        await lose(lambda: client.locks.hold("k", ttl=MINUTE), lambda: client.locks.force_release("k"))
    with pytest.raises(LockLost):
        async with client.locks.hold("k"):
            await client.locks.force_release("k")  # and the block ends before it notices


class Cable(httpx2.AsyncHTTPTransport):
    """The way to the server, until it is cut."""

    cut = False

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        if self.cut:
            raise httpx2.ConnectError("cut", request=request)
        return await super().handle_async_request(request)


@pytest.mark.long
async def test_who_cannot_renew_is_stopped_before_others_can_take_it(api: str, client: Client) -> None:
    cable = Cable()
    async with Client(api, ADMIN_KEY, retry=IMPATIENT, transport=cable) as lonely:
        with pytest.raises(LockLost, match="could not be renewed in time"):
            async with lonely.locks.hold("k", ttl=timedelta(seconds=10)):
                cable.cut = True
                await asyncio.sleep(NEVER)
        with pytest.raises(LockHeld):  # it was stopped while it still had the lock
            async with client.locks.hold("k"):
                pass


async def test_nobody_takes_a_lock_for_one_who_stopped_waiting(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = asyncio.Event()
    at_work: set[asyncio.Task[Any]] = set()

    async def watched(*what: Any, **how: Any) -> Any:
        at_work.add(cast("asyncio.Task[Any]", asyncio.current_task()))
        asked.set()
        return await retry_while_held(*what, **how)

    async def wait() -> None:
        async with client.locks.hold("k", wait=None):
            pytest.fail("two at once")

    async with client.locks.hold("k"):
        monkeypatch.setattr(routes, "retry_while_held", watched)
        waiting = asyncio.create_task(wait())
        await asked.wait()
        waiting.cancel()
        await asyncio.wait({waiting})
        _, at_work = await asyncio.wait(at_work, timeout=60)
        assert not at_work, "the server takes it for whoever stopped waiting"
    assert await states(client) == ["RELEASED"]


class LostAnswer(httpx2.AsyncHTTPTransport):
    """The way to the server, on which the first answer to one kind of request is lost."""

    def __init__(self, path: str) -> None:
        super().__init__()
        self._path = path
        self.lost = threading.Event()

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        response = await super().handle_async_request(request)
        if request.url.path == self._path and response.is_success and not self.lost.is_set():
            await response.aread()
            self.lost.set()
            await asyncio.sleep(NEVER)
        return response


@pytest.mark.parametrize("path", ["/v1/locks", "/v1/locks/renew"])
async def test_what_was_given_to_one_who_is_canceled_meanwhile_is_let_go(api: str, client: Client, path: str) -> None:
    line = LostAnswer(path)

    async def wait(impatient: Client) -> None:
        async with impatient.locks.hold("k", ttl=SHORT, wait=None):
            pytest.fail("it was never told")

    async with Client(api, ADMIN_KEY, transport=line) as impatient, asyncio.timeout(60):
        async with client.locks.hold("k"):
            waiting = asyncio.create_task(wait(impatient))
            if path.endswith("renew"):  # only after a long wait
                await asyncio.sleep(SHORT.total_seconds() / 2)
        await asyncio.to_thread(line.lost.wait)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        assert await states(client) == ["RELEASED"] * 2


async def test_who_asks_by_renewing_in_the_block_does_not_shorten_it(client: Client) -> None:
    async with client.locks.hold("k", ttl=timedelta(minutes=5)) as lock:
        asked = await client.locks.renew(await client.locks.renew(lock))
        assert asked.remaining_seconds > 200, "the default would end it long before it is renewed in the background"
        assert (await client.locks.renew(asked, ttl=timedelta(minutes=1))).ttl_seconds == 60


async def test_the_blocks_own_errors_pass_and_let_the_lock_go(client: Client) -> None:
    for error in (ValueError("no"), TimeoutError("its own")):
        with pytest.raises(type(error), match=str(error)):
            async with client.locks.hold("k"):
                raise error
    assert await states(client) == ["RELEASED"] * 2


async def test_without_an_event_loop_a_loss_is_told_at_the_end(api: str) -> None:
    def use() -> None:
        with SyncClient(api, ADMIN_KEY) as client:
            with client.locks.hold("k") as lock:
                assert client.locks.renew(lock).fence == 1
                with pytest.raises(LockHeld), client.locks.hold("k"):
                    pytest.fail("two at once")
            with pytest.raises(LockLost), client.locks.hold("k"):
                client.locks.force_release("k")
            with pytest.raises(ValueError, match="its own"), client.locks.hold("k"):
                raise ValueError("its own")
            assert [each.status for each in client.locks.list()] == ["RELEASED"] * 3

    await asyncio.to_thread(use)


async def test_ctrl_c_while_it_waits_lets_go_of_what_was_given_meanwhile(
    api: str, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    line = LostAnswer("/v1/locks")

    def interrupted(*_: object, **__: object) -> None:
        line.lost.wait()
        raise KeyboardInterrupt

    def use() -> None:
        with SyncClient(api, ADMIN_KEY, transport=line) as impatient:
            monkeypatch.setattr(futures, "wait", interrupted)
            with pytest.raises(KeyboardInterrupt), impatient.locks.hold("k"):
                pytest.fail("it was never told")

    await asyncio.to_thread(use)
    assert await states(client) == ["RELEASED"]
