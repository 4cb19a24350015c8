"""Figures on a port of their own."""

import httpx2
import pytest

from headrace.assembly.deployment import Deployment
from headrace.assembly.metrics import MetricsAddressUnknown, metrics_served, served
from headrace.database import Database, DatabaseConfig
from headrace.figures import Meters, no_figures
from headrace.settings import load
from headrace.web.app import create_app
from headrace.web.config import WebConfig
from headrace.web.metrics import Metrics
from tests.edge import stand


async def test_every_role_shows_what_it_counts_and_what_the_database_says(db: Database, free_tcp_port: int) -> None:
    settings = load(metrics_port=free_tcp_port)
    deployment = Deployment(db.config, db.config, embedded=False)
    async with metrics_served(settings, deployment, Meters("worker", "1.0")) as port, httpx2.AsyncClient() as client:
        shown = (await client.get(f"http://127.0.0.1:{port}/metrics")).text
        assert 'headrace_info{role="worker",version="1.0"} 1.0' in shown
        assert 'headrace_workers{state="alive"} 0.0' in shown
        assert "headrace_http" not in shown
        assert (await client.get(f"http://127.0.0.1:{port}/v1/tasks")).status_code == 404
        # Another process on the machine; and its database is away.
        away = DatabaseConfig("postgresql://nobody@127.0.0.1:1/none")
        async with metrics_served(settings, Deployment(away, away, embedded=False), Meters("relay")) as other:
            assert other != port
            shown = (await client.get(f"http://127.0.0.1:{other}/metrics")).text
            assert 'role="relay"' in shown
            assert "headrace_workers" not in shown


async def test_an_api_shows_figures_in_one_place_only(db: Database, free_tcp_port: int) -> None:
    app = create_app(stand.services(db), WebConfig(metrics=False))
    async with stand.client(app) as api:
        assert (await api.get("/metrics")).status_code == 404
        services = app.state.services
        counted = app.state.metrics
        assert isinstance(counted, Metrics)
        settings = load(metrics_port=free_tcp_port)
        async with (
            served(settings, services.meters, services.figures, counted=counted) as port,
            httpx2.AsyncClient() as client,
        ):
            shown = (await client.get(f"http://127.0.0.1:{port}/metrics")).text
    assert 'route="unmatched"' in shown


async def test_an_address_that_is_not_ours_is_named() -> None:
    settings = load(metrics_port=9100, metrics_host="203.0.113.1")
    with pytest.raises(MetricsAddressUnknown, match=r"203\.0\.113\.1"):
        async with served(settings, Meters(), no_figures):
            pytest.fail("nobody can listen there")
