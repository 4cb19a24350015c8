"""Fonts cut down to the letters that marks are drawn with, so that hundreds of faces can be carried to a GPU."""

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from fontTools import subset
from fontTools.ttLib import TTCollection, TTFont

from training.lettering import HAN, HAN_NAMES, MIN_SYMBOLS, OTHERS

# Families that the benchmarks and blind judgements draw with, or that look the same: they never enter training.
HELD_OUT = [
    "rubik",
    "aileron",
    "microhei",
    "wqy",
    "droidsansfallback",
    "dejavu",
    "lato",
    "liberation",
    "poppins",
    "jost",
    "dmsans",
    "archivo",
    "greatvibes",
    "sacramento",
    "dafoe",
    "zcoolxiaowei",
    "mashan",
    "dseg",
    "notosanscjk",
]
MAX_FACES = 3  # of a family
MIN_LETTERS, MAX_SYMBOLS = 40, 450
_SIGNS = "©®™·–—…|•→★ß"


def _wanted() -> set[int]:
    """Latin, Cyrillic, the letters of the listed phrases, and two thousand Han signs in the order of their code."""
    listed = {ord(sign) for phrase in (*HAN, *HAN_NAMES, *OTHERS) for sign in phrase}
    common = range(0x4E00, 0x9FA5, 10)
    return {*range(32, 127), *range(0xC0, 0x180), *range(0x400, 0x460), *map(ord, _SIGNS), *listed, *common}


def subset_fonts(folders: Sequence[Path], out: Path, *, seed: int = 1) -> int:
    """Write the faces below the folders as NNN.ttf with ``faces.json``; how many there are."""
    out.mkdir(parents=True, exist_ok=True)
    rng, wanted = np.random.default_rng(seed), _wanted()
    families: dict[str, list[Path]] = {}
    for folder in folders:
        for path in sorted(p for p in folder.rglob("*") if p.suffix in (".ttf", ".otf", ".ttc", ".woff")):
            if not any(word in str(path).lower().replace("-", "") for word in HELD_OUT):
                families.setdefault(path.relative_to(folder).parts[0], []).append(path)
    rows: list[dict[str, object]] = []
    for family, paths in families.items():
        for i in rng.permutation(len(paths))[:MAX_FACES]:
            name = f"{len(rows):03}.ttf"
            try:
                covers = _subset(paths[i], out / name, wanted, rng)
            except Exception as error:  # noqa: BLE001 - a bitmap font, a broken table: there are hundreds of others
                print(f"{paths[i].name} is passed over: {error!r:.80}")
                continue
            if covers:
                rows.append({"file": name, "family": family, "covers": covers})
    (out / "faces.json").write_text(json.dumps(rows))
    return len(rows)


def _subset(path: Path, target: Path, wanted: set[int], rng: np.random.Generator) -> list[int]:
    """Write the font with what is wanted of it; the codes that it covers, none if they are too few."""
    font = TTCollection(path).fonts[0] if path.suffix == ".ttc" else TTFont(path)
    covered = set(font.getBestCmap() or ())
    symbols = sorted(code for code in covered if 0xE000 <= code < 0xF900)
    if len(symbols) > MIN_SYMBOLS:
        codes = {int(code) for code in rng.choice(symbols, min(MAX_SYMBOLS, len(symbols)), replace=False)}
    else:
        codes = wanted & covered
    if len(codes) < MIN_LETTERS:
        return []
    options = subset.Options()
    options.hinting = False
    options.layout_features = ["kern", "liga", "calt"]
    options.drop_tables += ["DSIG"]
    font.flavor = None
    cutter = subset.Subsetter(options)
    cutter.populate(unicodes=codes)
    cutter.subset(font)
    font.save(target)
    return sorted(codes)
