"""What points to a shape that is gone: animations, builds and connectors."""

from typing import Any

from headrace.removal.documents.slides.deck import A, P

_WHOLE = ("clickEffect", "withEffect", "afterEffect", "interactiveSeq")
_PLAYERS = (f"{P}audio", f"{P}video")
_LISTS = tuple(
    f"{P}{name}" for name in ("childTnLst", "subTnLst", "stCondLst", "endCondLst", "nextCondLst", "prevCondLst")
)


def forget_shapes(root: Any, ids: set[str]) -> None:
    """Take animations of these shapes out of a slide; others keep their order and times."""
    timing = root.find(f"{P}timing")
    if timing is not None and any(each.get("spid") in ids for each in timing.iter()):
        for target in [each for each in timing.iter(f"{P}spTgt") if each.get("spid") in ids]:
            _drop_effect(target)
        for build in [each for each in timing.iter() if each.get("spid") in ids and each.tag != f"{P}spTgt"]:
            build.getparent().remove(build)
        _drop_empty(timing)
        if timing.find(f".//{P}spTgt") is None and timing.find(f".//{P}sldTgt") is None:
            root.remove(timing)
    for end in [*root.iter(f"{A}stCxn"), *root.iter(f"{A}endCxn")]:
        if end.get("id") in ids:
            end.getparent().remove(end)


def _drop_effect(target: Any) -> None:
    """What a target belongs to: an effect, a film that plays, or all that begins with a click on it."""
    for node in target.iterancestors():
        if node.tag in _PLAYERS or _node_type(node) in _WHOLE:
            node.getparent().remove(node)
            return
        if node.tag == f"{P}timing":
            break
    for node in target.iterancestors():  # written by some other program: the nearest entry of a list
        above = node.getparent()
        if above is None or above.tag in _LISTS:
            if above is not None:
                above.remove(node)
            return


def _node_type(node: Any) -> str | None:
    common = node.find(f"{P}cTn") if node.tag in (f"{P}par", f"{P}seq") else None
    return None if common is None else common.get("nodeType")


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
    if above.tag != f"{P}cTn" or above.get("nodeType") == "tmRoot":
        return
    # A node of time without children is none; the root stays for the caller to judge.
    holder = above.getparent()
    if holder is not None and holder.getparent() is not None:
        holder.getparent().remove(holder)
