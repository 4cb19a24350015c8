"""What the chart renders, kept in files: the difference of a change is read in them.

``python -m tests.delivery.rendering`` writes them.
"""

import sys
from pathlib import Path

import yaml

from tests.delivery.test_chart import EVERYTHING, rendered

FOLDER = Path(__file__).parent / "rendered"
VALUES = {"defaults": {}, "everything": EVERYTHING}


def text_of(name: str) -> str:
    return yaml.safe_dump_all(rendered(VALUES[name]), sort_keys=True, allow_unicode=True, width=110)


def main() -> None:
    FOLDER.mkdir(exist_ok=True)
    for name in VALUES:
        (FOLDER / f"{name}.yaml").write_text(text_of(name))
        sys.stdout.write(f"wrote tests/delivery/rendered/{name}.yaml\n")


if __name__ == "__main__":
    main()
