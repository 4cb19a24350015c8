"""Users that come and go while everything is killed at random: what holds at the end, and all the while."""

import os
import random
import signal
import time
from collections.abc import Callable
from contextlib import suppress

import pytest

from headrace.embedded_postgres import EmbeddedConfig, attach
from headrace.embedded_postgres.model import Layout
from tests.embedded_postgres.conftest import User, ask, end, is_over, running

_SECONDS = 45


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_whatever_is_killed_the_survivors_have_a_server_and_nothing_outlives_them(
    user: Callable[..., User], config: EmbeddedConfig, layout: Layout, seed: int
) -> None:
    dice = random.Random(seed)
    users: list[User] = []
    until = time.monotonic() + _SECONDS
    while time.monotonic() < until:
        match dice.choice(["come", "come", "go", "kill user", "kill server", "kill server", "look"]):
            case "come" if len(users) < 5:
                users.append(user())
            case "go" if users:
                leaving = users.pop(dice.randrange(len(users)))
                assert "error" not in leaving.said, leaving.said
                leaving.close()
            case "kill user" if users:
                users.pop(dice.randrange(len(users))).kill()
            case "kill server" if found := running(layout):
                with suppress(ProcessLookupError):
                    os.kill(dice.choice(found), signal.SIGKILL)
            case "look" if users:
                check_is_served(users[0])
        time.sleep(dice.random() * 0.3)
    for each in users:
        check_is_served(each)
        each.close()
    # Keeper and users may have died together: then the next user finds the server and ends it.
    attach(config).close()
    assert is_over(layout, within=60), running(layout)
    end(layout)


def check_is_served(user: User) -> None:
    assert "error" not in user.said, user.said
    assert ask(user.said["app_url"], "SELECT 1", within=60) == 1
