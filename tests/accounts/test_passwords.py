import asyncio
import time

import argon2
import pytest

from headrace.accounts.config import PasswordConfig
from headrace.accounts.errors import PasswordsBusy
from headrace.accounts.passwords import Passwords, generate
from headrace.accounts.rules import check_password

CHEAP = PasswordConfig(time_cost=1, memory_kib=8, parallelism=1, at_once=1)


async def test_the_defaults_are_argon2id_with_enough_memory() -> None:  # D-01
    hashed = await Passwords(PasswordConfig()).hash("correct horse battery")
    parameters = argon2.extract_parameters(hashed)
    assert hashed.startswith("$argon2id$")
    assert parameters.memory_cost >= 19 * 1024
    assert parameters.salt_len >= 16
    assert len(hashed) <= 128, "what users.password_hash holds"


async def test_a_password_is_verified_and_another_is_not() -> None:
    passwords = Passwords(CHEAP)
    hashed = await passwords.hash("p\u00e9ssword")
    assert await passwords.verify(hashed, "pe\u0301ssword"), "another keyboard composes é in another way"
    assert not await passwords.verify(hashed, "password")


@pytest.mark.parametrize("stored", [None, "!", "", "$argon2id$garbage", "$2b$12$bcrypt"])
async def test_without_a_real_hash_nothing_matches(stored: str | None) -> None:
    assert not await Passwords(CHEAP).verify(stored, "anything")


async def test_an_unknown_user_takes_as_long_as_a_known_one() -> None:
    passwords = Passwords(PasswordConfig(time_cost=3, memory_kib=16 * 1024, parallelism=1, at_once=1))
    hashed = await passwords.hash("right")

    def cost(stored: str | None) -> float:
        """Processor time, which other programs on this machine do not change."""
        started = time.thread_time()
        assert not passwords._verify(stored, b"wrong")
        return time.thread_time() - started

    known, unknown = (min(cost(stored) for _ in range(7)) for stored in (hashed, None))
    assert 0.5 < unknown / known < 2


async def test_changed_parameters_make_a_hash_outdated() -> None:
    hashed = await Passwords(CHEAP).hash("x")
    assert not Passwords(CHEAP).needs_rehash(hashed)
    assert Passwords(PasswordConfig(time_cost=2, memory_kib=8, parallelism=1)).needs_rehash(hashed)


async def test_a_flood_is_refused_and_the_loop_goes_on() -> None:
    passwords = Passwords(PasswordConfig(time_cost=4, memory_kib=8 * 1024, parallelism=1, at_once=1, waiting=2))
    ticks = 0

    async def tick() -> None:
        nonlocal ticks
        while True:
            ticks += 1
            await asyncio.sleep(0.001)

    ticking = asyncio.create_task(tick())
    results = await asyncio.gather(*(passwords.hash("x") for _ in range(10)), return_exceptions=True)
    ticking.cancel()
    assert sum(isinstance(result, str) for result in results) == 3
    assert sum(isinstance(result, PasswordsBusy) for result in results) == 7
    assert ticks > 3
    await passwords.hash("afterwards")


@pytest.mark.parametrize("min_length", [8, 10, 64, 128])
def test_a_generated_password_keeps_the_rules(min_length: int) -> None:
    config = PasswordConfig(min_length=min_length)
    first, second = generate(config), generate(config)
    assert first != second
    check_password(first, username=None, config=config)
