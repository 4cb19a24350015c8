"""A worker to be killed: ``python -m tests.tasks.isolation.worker_process PATH``.

Its child writes to PATH who it is and what it started.
"""

import asyncio
import sys
from pathlib import Path

from headrace.tasks.isolation.children import Children
from tests.tasks.isolation.stand import Stand


async def main(path: Path) -> None:
    await Stand(Children(size=1), path.parent).run("stubborn", str(path))


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1])))
