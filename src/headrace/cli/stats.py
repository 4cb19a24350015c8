"""``headrace stats``: submitted and ended tasks, and their durations."""

from typing import Annotated, Any

import typer

from headrace.cli.calls import path, perform
from headrace.cli.output import Json, out, print_json, print_table
from headrace.cli.requests import Api
from headrace.cli.showing import when
from headrace.cli.words import one_of

_COUNTED = ("submitted", "succeeded", "failed", "needs_input", "canceled")
_HEADS = ("submitted", "succeeded", "failed", "of them questions", "canceled")


def stats(
    range_: Annotated[
        str,
        one_of("--range", offered=("hour", "day", "week"), help="How far back: by minutes, tens of them, or hours."),
    ] = "hour",
    task_type: Annotated[str | None, typer.Option("--type", help="Durations of this task type only.")] = None,
    every: Annotated[bool, typer.Option("--every", help="Every step, not only the sums.")] = False,
    json: Json = False,
) -> None:
    """Throughput, failures, queue depth and latency of the last hour, day or week."""

    async def act(api: Api) -> Any:
        return await api.ask(
            "GET",
            path("admin", "statistics"),
            params={"range": range_} | ({} if task_type is None else {"task_type": task_type}),
        )

    rows = perform("stats", act)
    if json:
        print_json(rows)
        return
    points = rows["points"]
    if not points:
        out.print("Nothing was measured yet: figures are kept once a minute while an API or a scheduler runs.")
        return
    sums = {name: sum(point[name] for point in points) for name in _COUNTED}
    print_table(("the last " + range_, *_HEADS), [("", *(f"{sums[name]:,}" for name in _COUNTED))])
    print_table(
        ("queue", "ended", "failed", "waiting now"),
        [
            (queue["name"], f"{sum(queue['ended']):,}", f"{sum(queue['failed']):,}", _latest(queue["waiting"]))
            for queue in rows["queues"]
        ],
    )
    if every:
        print_table(
            ("from", *_HEADS, "waiting", "waited p95", "ran p95"),
            [
                (
                    when(point["at"]),
                    *(f"{point[name]:,}" for name in _COUNTED),
                    "" if point["waiting"] is None else f"{point['waiting']:,}",
                    _seconds(point["wait_p95"]),
                    _seconds(point["run_p95"]),
                )
                for point in points
            ],
        )


def _latest(values: list[int | None]) -> str:
    return next((f"{value:,}" for value in reversed(values) if value is not None), "")


def _seconds(value: float | None) -> str:
    return "" if value is None else f"{value:.2f} s"
