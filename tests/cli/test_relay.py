"""``headrace relay``: real processes, one killed, another stopped in order, and a broker that gets everything. W-12."""

import asyncio
import signal
from pathlib import Path

from tests.cli.conftest import Place
from tests.cli.test_admin import fetch
from tests.e2e.program import Program, eventually
from tests.outbox.test_nats import Broker, broker, messages

__all__ = ["broker"]  # a fixture

WRITE = """
INSERT INTO headrace.outbox_events
  (event_id, event_type, event_version, aggregate_type, aggregate_id, payload_json, status)
SELECT '{prefix}' || n, 'task.created', 1, 'task', 'tsk_' || n % 7, '{{}}', 'PENDING' FROM generate_series(1, 100) AS n
"""
LEFT = "SELECT count(*) AS left FROM headrace.outbox_events WHERE status <> 'PUBLISHED'"
WAITING = "SELECT count(*) AS waiting FROM headrace.broker_messages"


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
