"""``headrace relay``: real processes, one killed, another stopped in order, and a broker that gets everything. W-12."""

import asyncio
import signal
from functools import partial
from pathlib import Path

import asyncpg
import pytest

from tests.cli.conftest import Place
from tests.cli.test_admin import fetch
from tests.e2e.program import SECRET_KEY, Program, eventually
from tests.outbox.test_nats import Broker, broker, messages
from tests.races.engine_stand import mortal_server

__all__ = ["broker"]  # a fixture

WRITE = """
INSERT INTO headrace.outbox_events
  (event_id, event_type, event_version, aggregate_type, aggregate_id, payload_json, status)
SELECT '{prefix}' || n, 'task.created', 1, 'task', 'tsk_' || n % 7, '{{}}', 'PENDING' FROM generate_series(1, 100) AS n
"""
LEFT = "SELECT count(*) AS left FROM headrace.outbox_events WHERE status <> 'PUBLISHED'"
# Fails until it is so.
IS_PUBLISHED = """
SELECT 1 / (count(*) = 100)::integer FROM headrace.outbox_events
WHERE event_id LIKE '{prefix}%' AND status = 'PUBLISHED'
"""
WAITING = "SELECT count(*) AS waiting FROM headrace.broker_messages"


@pytest.mark.slow
def test_relays_share_the_work_and_one_that_is_killed_loses_nothing(
    tmp_path: Path, migrated: Place, broker: Broker
) -> None:
    asyncio.run(broker.wait())
    settings = {**migrated.settings, "HEADRACE_NATS_URL": broker.url, "HEADRACE_RELAY_POLL_INTERVAL": "100ms"}
    relays = [Program("relay", folder=tmp_path, settings=settings) for _ in range(2)]
    try:
        fetch(migrated, WRITE.format(prefix="evt_a"))
        assert eventually(lambda: len(fetch(migrated, "SELECT FROM headrace.relays")) == 2), relays[0].err
        relays[0].kill()
        fetch(migrated, WRITE.format(prefix="evt_b"))
        # What the dead one had leased comes back after half a minute.
        assert eventually(lambda: fetch(migrated, LEFT)[0]["left"] == 0, within=120), relays[1].err
        assert eventually(lambda: fetch(migrated, WAITING)[0]["waiting"] == 0, within=120), relays[1].err
        assert relays[1].stop(signal.SIGTERM) == 0
        assert "events published" in relays[1].err
    finally:
        for relay in relays:
            relay.close()
    assert len({name for _, name, _ in asyncio.run(messages(broker.url))}) == 200
    assert len(fetch(migrated, "SELECT FROM headrace.relays")) == 1  # the killed one's, which is silent


@pytest.mark.slow
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_a_relay_outlasts_the_death_of_postgres(tmp_path: Path, how: signal.Signals) -> None:
    with mortal_server() as mortal:
        settings = {**SECRET_KEY, "HEADRACE_DATABASE_URL": mortal.url, "HEADRACE_RELAY_POLL_INTERVAL": "100ms"}
        relay = Program("relay", folder=tmp_path, settings=settings)

        def is_published(prefix: str) -> bool:
            try:
                asyncio.run(mortal.run(IS_PUBLISHED.format(prefix=prefix)))
            except (OSError, asyncpg.PostgresError):
                return False
            return True

        try:
            assert eventually(lambda: "relaying events" in relay.err), relay.err
            for number in range(3):
                asyncio.run(mortal.run(WRITE.format(prefix=f"evt_{number}_")))
                assert eventually(partial(is_published, f"evt_{number}_")), relay.err
                mortal.kill(how)
                assert eventually(lambda: is_published("evt_0_")), "PostgreSQL did not come back"
            asyncio.run(mortal.run(WRITE.format(prefix="evt_last_")))
            assert eventually(lambda: is_published("evt_last_")), relay.err
            assert relay.running, relay.err
            assert '"level": "error"' not in relay.err, relay.err  # nothing that nobody had foreseen
            assert relay.stop(signal.SIGTERM) == 0
        finally:
            relay.close()
