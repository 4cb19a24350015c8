"""A user of the embedded server as a process of its own: attaches, says so, and closes when told to.

Run by path with a JSON object of EmbeddedConfig's fields. Prints one JSON line: the addresses, or the error.
"""

import json
import sys
import time
from pathlib import Path

from headrace.embedded_postgres import EmbeddedConfig, attach
from headrace.errors import HeadraceError


def main(asked: dict[str, object]) -> int:
    paths = {name: Path(str(asked.pop(name))) for name in ("data_dir", "binaries") if asked.get(name)}
    began = time.perf_counter()
    try:
        server = attach(EmbeddedConfig(**paths, **asked))  # type: ignore[arg-type]  # the tests know what they pass
    except HeadraceError as exc:
        _say({"error": exc.code, "message": exc.message})
        return 1
    said = {
        "port": server.port,
        "version": server.version,
        "app_url": server.app_url,
        "owner_url": server.owner_url,
        "superuser_url": server.superuser_url,
        "seconds": time.perf_counter() - began,
    }
    _say(said)
    sys.stdin.readline()
    server.close()
    return 0


def _say(said: dict[str, object]) -> None:
    sys.stdout.write(json.dumps(said) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(json.loads(sys.argv[1])))
