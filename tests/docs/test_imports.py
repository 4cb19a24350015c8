"""No two modules import each other, directly or over others, imports inside functions included."""

from graphlib import CycleError, TopologicalSorter

import grimp


def test_no_modules_import_each_other() -> None:
    graph = grimp.build_graph("headrace", cache_dir=None)
    imports = {module: graph.find_modules_directly_imported_by(module) for module in graph.modules}
    # A package's own face names what lies above; it loads it only for those who ask for it.
    imports["headrace"] = set()
    try:
        TopologicalSorter(imports).prepare()
    except CycleError as exc:
        raise AssertionError(" -> ".join(exc.args[1])) from None
