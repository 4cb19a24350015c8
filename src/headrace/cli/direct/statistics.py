"""Statistics, as the API answers for them."""

from collections.abc import Mapping
from typing import Any

from headrace.cli.direct.answering import Handler, Request
from headrace.operations.overview.schemas import StatisticsRangeOut
from headrace.operations.statistics.model import Range
from headrace.operations.statistics.service import read_statistics


async def get_statistics(request: Request) -> Any:
    async with request.begin() as tx:
        found = await read_statistics(tx, Range(request.params.get("range", Range.HOUR)))
    return StatisticsRangeOut.of(found).model_dump(mode="json")


HANDLERS: Mapping[str, Handler] = {"GET /v1/admin/statistics": get_statistics}
