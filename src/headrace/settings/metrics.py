"""Serving metrics."""

from typing import Annotated, ClassVar

from pydantic import Field

from headrace.settings.kinds import Group, setting


class MetricsSettings(Group):
    title: ClassVar[str] = "Metrics"

    metrics_port: Annotated[int, Field(ge=1, le=65_535)] | None = setting(
        "The port on which every process serves its metrics to Prometheus, without authentication. Of several "
        "processes on one machine each takes the next free one of the 64 from here. Unset, only the API serves "
        "metrics, at its own port; if set, it serves them only here.",
        None,
    )
    metrics_host: str = setting(
        "The address to serve metrics on. They are readable without authentication: use `0.0.0.0` only inside a "
        "private network.",
        "127.0.0.1",
    )
