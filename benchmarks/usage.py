"""What processes use: processor time, memory and connections, PostgreSQL's included."""

import asyncio
import os
from pathlib import Path

import asyncpg

_TICKS = os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")


def _stat(pid: int) -> list[str]:
    """The fields after the command's name, which may hold blanks."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()


def cpu_seconds(pid: int, *, with_ended_children: bool = False) -> float:
    fields = _stat(pid)
    return sum(map(int, fields[11 : 15 if with_ended_children else 13])) / _TICKS


def children(pid: int) -> list[int]:
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                if int(_stat(int(entry.name))[1]) == pid:
                    found.append(int(entry.name))
            except FileNotFoundError:
                continue
    return found


def tree_cpu_seconds(pid: int) -> float:
    """Of a process, its children and those of them that have ended."""
    total = cpu_seconds(pid, with_ended_children=True)
    for child in children(pid):
        try:
            total += tree_cpu_seconds(child)
        except FileNotFoundError:
            continue
    return total


def rss_mb(pid: int) -> float:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * _PAGE / 1e6


async def server_pid(url: str) -> int:
    connection = await asyncpg.connect(url)
    try:
        folder = await connection.fetchval("SHOW data_directory")
    finally:
        await connection.close()
    return int((await asyncio.to_thread(Path(folder, "postmaster.pid").read_text)).split()[0])
