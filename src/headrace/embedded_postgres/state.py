"""The keeper's word about the server, in a file for those who attach later."""

import json
from dataclasses import asdict

from headrace.embedded_postgres import files
from headrace.embedded_postgres.model import Layout, Phase, State


def write(layout: Layout, state: State) -> None:
    """Replace the state on disk."""
    files.write(layout.state, json.dumps(asdict(state)) + "\n")


def read(layout: Layout) -> State | None:
    """Read the last word; None when there is none. It is worth nothing unless a keeper lives."""
    try:
        values = json.loads(layout.state.read_text())
        return State(Phase(values["phase"]), int(values["port"]), str(values["version"]), str(values["note"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None
