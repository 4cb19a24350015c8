"""Figures for Prometheus, in a registry of the app's own, so that two apps in one process do not add up."""

from collections.abc import Iterator, Sequence

from prometheus_client import CollectorRegistry, Gauge, Histogram, ProcessCollector
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.registry import Collector

from headrace.edge.services import Figure
from headrace.web.connections import Connections, Phase, Reason

CONTENT_TYPE = CONTENT_TYPE_LATEST

_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)


class Metrics:
    """What the API counts. Labels come from a closed set: a client must not be able to invent new series."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        self._durations = Histogram(
            "headrace_http_request_duration_seconds",
            "Time from the request to the last byte of its answer.",
            ("method", "route", "status"),
            buckets=_BUCKETS,
            registry=self.registry,
        )
        self.in_flight = Gauge("headrace_http_requests_in_flight", "Requests being answered.", registry=self.registry)

    def served(self, method: str, route: str, status: int, seconds: float) -> None:
        known = method if method in _METHODS else "OTHER"
        self._durations.labels(known, route, str(status)).observe(seconds)

    def watch(self, connections: Connections) -> None:
        """Show these connections, too."""
        self.registry.register(_ConnectionFigures(connections))

    def render(self, figures: Sequence[Figure] = ()) -> bytes:
        """What was counted here, and figures from elsewhere."""
        return generate_latest(self.registry) + generate_latest(_registry_of(figures))


class _ConnectionFigures(Collector):
    def __init__(self, connections: Connections) -> None:
        self._connections = connections

    def collect(self) -> Iterator[Metric]:
        opened = GaugeMetricFamily("headrace_http_connections", "Open connections by phase.", labels=["phase"])
        for phase in Phase:
            opened.add_metric([phase.value], self._connections.count(phase))
        closed = CounterMetricFamily(
            "headrace_http_connections_closed", "Connections closed or refused by the server.", labels=["reason"]
        )
        for reason in Reason:
            closed.add_metric([reason.value], self._connections.closed[reason])
        yield opened
        yield closed


def _registry_of(figures: Sequence[Figure]) -> CollectorRegistry:
    registry = CollectorRegistry()
    for figure in figures:
        gauge = Gauge(figure.name, figure.help, figure.labels, registry=registry)
        for labels, value in figure.values.items():
            (gauge.labels(*labels) if labels else gauge).set(value)
    return registry
