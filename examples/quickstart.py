"""Two kinds of task: submitted, run and waited for, in one program."""

import asyncio
import os

from headrace import Headrace, Registry, TaskContext

registry = Registry()


@registry.task("greet")
async def greet(context: TaskContext, payload: dict[str, str]) -> str:
    return f"Hello, {payload['name']}, from attempt {context.attempt}!"


@registry.task("count", max_attempts=5)
async def count(context: TaskContext, payload: dict[str, int]) -> int:
    for number in range(payload["to"]):
        await context.progress(100 * number / payload["to"])
        await asyncio.sleep(0.2)
    return payload["to"]


async def main() -> None:
    async with Headrace(os.environ["HEADRACE_DATABASE_URL"], registry) as hr, hr.working():
        hello = await hr.submit("greet", {"name": "Ada"})
        print((await hr.wait(hello)).result)
        counting = await hr.submit("count", {"to": 5})
        done = await hr.wait(counting, on_progress=lambda task: print(f"{task.status.lower()} {task.progress} %"))
        print("counted to", done.result)


if __name__ == "__main__":
    asyncio.run(main())
