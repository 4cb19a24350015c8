"""The keeper's program, started by its path: ``python -I -S …/embedded/__main__.py``.

It puts an empty stand-in in the place of the ``headrace`` package, so that the keeper stays small and quick whatever
``headrace/__init__.py`` comes to import, and needs no site-packages.
"""

import sys
import types
from pathlib import Path

if __name__ == "__main__":
    package = types.ModuleType("headrace")
    package.__path__ = [str(Path(__file__).resolve().parent.parent)]
    sys.modules["headrace"] = package
    from headrace.embedded_postgres.keeper import main

    main(sys.argv)
