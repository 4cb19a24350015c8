"""What points to a shape that is gone: animations, builds and connectors."""

from typing import Any

from headrace.removal.slides.deck import A, P

_EFFECTS = ("clickEffect", "withEffect", "afterEffect", "clickPar", "withGroup", "afterGroup")


def forget_shapes(root: Any, ids: set[str]) -> None:
    """Take animations of these shapes out of a slide; others keep their order and times."""
    timing = root.find(f"{P}timing")
    if timing is not None:
        for target in [each for each in timing.iter(f"{P}spTgt") if each.get("spid") in ids]:
            _drop_effect(timing, target)
        for build in [each for each in timing.iter() if each.get("spid") in ids and each.tag != f"{P}spTgt"]:
            build.getparent().remove(build)
        _drop_empty(timing)
        if timing.find(f".//{P}spTgt") is None and timing.find(f".//{P}sldTgt") is None:
            root.remove(timing)
    for end in [*root.iter(f"{A}stCxn"), *root.iter(f"{A}endCxn")]:
        if end.get("id") in ids:
            end.getparent().remove(end)


def _drop_effect(timing: Any, target: Any) -> None:
    """The whole effect that a target belongs to: the nearest node that is one, or the node that plays a film."""
    node = target.getparent()
    smallest = None
    while node is not None and node is not timing:
        if node.tag in (f"{P}audio", f"{P}video"):
            smallest = node
            break
        if node.tag == f"{P}par":
            smallest = smallest if smallest is not None else node
            common = node.find(f"{P}cTn")
            if common is not None and common.get("nodeType") in _EFFECTS[:3]:
                smallest = node
                break
        node = node.getparent()
    if smallest is not None and smallest.getparent() is not None:
        smallest.getparent().remove(smallest)
    elif target.getparent() is not None:
        target.getparent().remove(target)


def _drop_empty(timing: Any) -> None:
    """Lists without entries are not allowed: what is left around one goes with it."""
    while True:
        empty = [
            each
            for each in timing.iter(f"{P}childTnLst", f"{P}bldLst")
            if len(each) == 0 and each.getparent() is not None
        ]
        if not empty:
            return
        for node in empty:
            _drop_with_container(node)


def _drop_with_container(node: Any) -> None:
    above = node.getparent()
    above.remove(node)
    holder = above.getparent() if above is not None else None
    # A node of time without children is none: par and seq go, the root stays for the caller to judge.
    closed = holder is not None and holder.tag in (f"{P}par", f"{P}seq", f"{P}excl") and holder.getparent() is not None
    if holder is not None and closed and above.get("nodeType") != "tmRoot":
        holder.getparent().remove(holder)
