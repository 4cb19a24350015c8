"""Figures for Prometheus, in a registry per app, so that two apps in one process stay separate."""

from collections.abc import Iterator, Sequence

from prometheus_client import CollectorRegistry, Gauge, Histogram, ProcessCollector
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.registry import Collector

from headrace.figures import Figure, Kind
from headrace.web.connections import Connections, Phase, Reason

CONTENT_TYPE = CONTENT_TYPE_LATEST

_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)


class Metrics:
    """The API's figures. Labels come from a closed set, so that clients cannot create series."""

    def __init__(self, *, http: bool = True) -> None:
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        if not http:  # a role without an API
            return
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
        """Include the figures of these connections."""
        self.registry.register(_ConnectionFigures(connections))

    def render(self, figures: Sequence[Figure] = ()) -> bytes:
        """Render the figures of this process and additional ones."""
        return generate_latest(self.registry) + render(figures)


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


class _FigureCollector(Collector):
    """Figures from elsewhere."""

    def __init__(self, figures: Sequence[Figure]) -> None:
        self._figures = figures

    def collect(self) -> Iterator[Metric]:
        for figure in self._figures:
            yield _histogram_of(figure) if figure.kind is Kind.HISTOGRAM else _numbers_of(figure)


def _numbers_of(figure: Figure) -> Metric:
    kind = CounterMetricFamily if figure.kind is Kind.COUNTER else GaugeMetricFamily
    family = kind(figure.name, figure.help, labels=figure.labels)
    for labels, value in figure.values.items():
        family.add_metric(labels, value)
    return family


def _histogram_of(figure: Figure) -> Metric:
    family = HistogramMetricFamily(figure.name, figure.help, labels=figure.labels)
    for labels, histogram in figure.histograms.items():
        so_far = 0
        buckets = []
        for bound, count in zip((*map(str, histogram.bounds), "+Inf"), histogram.counts, strict=True):
            so_far += count
            buckets.append((bound, so_far))
        family.add_metric(labels, buckets, sum_value=histogram.total)
    return family


def render(figures: Sequence[Figure]) -> bytes:
    """Render figures in Prometheus's format."""
    registry = CollectorRegistry()
    registry.register(_FigureCollector(figures))
    return generate_latest(registry)
