"""``python -m headrace`` is ``headrace``, also where the environment's scripts are not on the path."""

from headrace.cli.app import main

main()
