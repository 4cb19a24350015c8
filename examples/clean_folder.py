"""Takes the marks off all files of a folder through the API: what is certain by itself, and tells what needs a look.

    python examples/clean_folder.py IN OUT

``HEADRACE_URL`` and ``HEADRACE_API_KEY`` say where and as whom; the key needs files:read, files:write, tasks:read and
tasks:write. Only files that are yours, please: the order says so for each of them, and that is kept.
"""

import os
import sys
from pathlib import Path

from headrace.client import ApiError, NewRemoval, SyncClient


def clean_folder(client: SyncClient, source: Path, target: Path) -> bool:
    """Whether every file lost its mark."""
    files: dict[str, Path] = {}
    for path in sorted(each for each in source.iterdir() if each.is_file()):
        try:
            files[client.files.upload(path).id] = path
        except ApiError as refused:
            print(f"{path.name}: not taken: {refused.message}")
    if not files:
        return False
    wanted = NewRemoval(rights="OWNER", statement="the folder of examples/clean_folder.py")
    quote = client.removals.quote(list(files), wanted)
    print(f"{len(files)} files cost {quote.units} of {quote.left} units")
    target.mkdir(parents=True, exist_ok=True)
    cleaned = 0
    for ordered in client.removals.order(list(files), wanted):
        path = files[ordered.asset_id]
        client.wait(ordered.id)
        removal = client.removals.get(ordered.id)
        if removal.succeeded:
            made = client.files.download_result(removal.id, target / path.name)
            cleaned += 1
            print(f"{path.name}: clean, {made.size_bytes} bytes")
        else:
            # Not charged. What may be a mark is in `candidates`: name some in a MANUAL order.
            found = f" ({len(removal.candidates)} candidates)" if removal.needs_review else ""
            print(f"{path.name}: left as it is: {removal.error_code}{found}")
    return cleaned == len(files)


if __name__ == "__main__":
    with SyncClient(os.environ["HEADRACE_URL"], os.environ["HEADRACE_API_KEY"]) as opened:
        sys.exit(0 if clean_folder(opened, Path(sys.argv[1]), Path(sys.argv[2])) else 1)
