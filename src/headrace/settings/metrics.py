"""Where figures are shown."""

from typing import Annotated, ClassVar

from pydantic import Field

from headrace.settings.kinds import Group, setting


class MetricsSettings(Group):
    title: ClassVar[str] = "Metrics"

    metrics_port: Annotated[int, Field(ge=1, le=65_535)] | None = setting(
        "The port on which every process shows its figures to Prometheus, whoever asks. Of several processes on one "
        "machine each takes the next free one of the 64 from here. Unset, only the API shows figures, at its own port; "
        "set, it shows them here and no longer there.",
        None,
    )
    metrics_host: str = setting(
        "The address to show figures on. Everybody who reaches it can read it: `0.0.0.0` only inside a network of "
        "one's own.",
        "127.0.0.1",
    )
