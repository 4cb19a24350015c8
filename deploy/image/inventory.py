"""What an environment holds: packages, versions, licences and the shared libraries inside wheels.

    python inventory.py FOLDER    write FOLDER/NOTICE and FOLDER/sbom.cdx.json (CycloneDX 1.6) of its environment

Uses the standard library only: deploy/image/install runs it in the environment that it has just made.
"""

import json
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path

RULES = tomllib.loads((Path(__file__).parent / "licences.toml").read_text("utf-8"))
_LIBRARY = re.compile(r"\.so(\.[\d.]+\w*)?$")
_PART = re.compile(r"\s+(?:AND|OR)\s+")
_COPYLEFT = re.compile(r"^[AL]?GPL-")


@dataclass(frozen=True, eq=False)
class Package:
    name: str
    version: str
    licence: str
    kind: str = "pypi"
    libraries: Mapping[str, str] = field(default_factory=dict)  # shared libraries of other projects -> licence

    @property
    def purl(self) -> str:
        return f"pkg:{self.kind}/{self.name.replace('@', '%40')}@{self.version}"


def canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def licence_of(found: metadata.PackageMetadata) -> str:
    """SPDX, as far as the package says it; `unknown` otherwise."""
    if expression := found.get("License-Expression"):
        return expression
    classifiers = [
        line.rpartition(" :: ")[2] for line in found.get_all("Classifier") or () if line.startswith("License")
    ]
    words = [word for word in classifiers if word not in ("OSI Approved", "DFSG approved")]
    text = (found.get("License") or "").strip()
    return " OR ".join(_spdx(word) for word in words) or (_spdx(text) if text and "\n" not in text else "unknown")


def _spdx(text: str) -> str:
    return str(RULES["spellings"].get(text, text))


def is_allowed(licence: str) -> bool:
    """Whether every part of an AND, and one part of an OR, is on the list."""
    text = licence.replace("(", "").replace(")", "")
    return all(any(part in RULES["allowed"] for part in each.split(" OR ")) for each in text.split(" AND "))


def packages(path: Iterable[Path] | None = None) -> dict[str, Package]:
    """The installed distributions by canonical name."""
    found = {}
    for each in metadata.distributions() if path is None else metadata.distributions(path=[str(part) for part in path]):
        name = canonical(each.metadata["Name"])
        found[name] = Package(name, each.version, licence_of(each.metadata), libraries=dict(_bundled(name, each)))
    return dict(sorted(found.items()))


def _bundled(name: str, distribution: metadata.Distribution) -> Iterator[tuple[str, str]]:
    """The libraries of other projects: those that build tools put into a folder NAME.libs."""
    rules = RULES["bundled"].get(name, {})
    for file in distribution.files or ():
        if file.parts[0].endswith(".libs") and _LIBRARY.search(file.name):
            yield file.name, rules.get(re.split(r"[-.]", file.name)[0], "as the package says")


def npm_packages(root: Path, *, development: bool = False) -> list[Package]:
    """The npm packages of the console; those that its files contain, or with those that build and test it."""
    lock = json.loads((root / "console" / "package-lock.json").read_text("utf-8"))
    return [
        Package(path.rpartition("node_modules/")[2], entry["version"], entry.get("license", "unknown"), "npm")
        for path, entry in lock["packages"].items()
        if path and (development or not (entry.get("dev") or entry.get("optional")))
    ]


def debian_packages() -> list[Package]:
    """The system's packages, where it is Debian's."""
    if shutil.which("dpkg-query") is None:
        return []
    listed = subprocess.run(
        ["dpkg-query", "--show", "--showformat", "${Package} ${Version}\n"], capture_output=True, text=True, check=True
    )
    pairs = (line.split(" ", 1) for line in listed.stdout.splitlines())
    return [Package(name, version, f"see /usr/share/doc/{name}/copyright", "deb/debian") for name, version in pairs]


def copyleft(found: Iterable[Package]) -> dict[str, list[str]]:
    """GPL and LGPL: the licence, and where it is."""
    places: dict[str, list[str]] = {}
    for package in found:
        for licence, place in [
            (package.licence, package.name),
            *((licence, f"{package.name}: {library}") for library, licence in package.libraries.items()),
        ]:
            parts = _PART.split(licence.replace("(", "").replace(")", ""))
            if any(_COPYLEFT.match(part) for part in parts):
                places.setdefault(licence, []).append(place)
    return dict(sorted(places.items()))


def notice(title: str, found: Iterable[Package]) -> str:
    found = list(found)
    lines = [
        title,
        "=" * len(title),
        "",
        "Made by a script. Each package's own files have the whole text of its licence.",
        "",
    ]
    for package in found:
        lines.append(f"{package.name} {package.version}: {package.licence}")
        lines += [f"    {library}: {licence}" for library, licence in sorted(package.libraries.items())]
    if places := copyleft(found):
        lines += ["", "GPL and LGPL", "------------", ""]
        lines += ["These files are as their projects published them, unchanged. The package's page in the index of"]
        lines += ["packages leads to the sources of the named version.", ""]
        for licence, where in places.items():
            lines += [licence, *(f"    {place}" for place in where)]
    return "\n".join(lines) + "\n"


def sbom(name: str, version: str, found: Iterable[Package]) -> str:
    """CycloneDX 1.6, without a time: the same content gives the same bytes."""
    components = []
    for package in found:
        component: dict[str, object] = {
            "type": "library",
            "bom-ref": package.purl,
            "name": package.name,
            "version": package.version,
            "purl": package.purl,
            "licenses": _licenses(package.licence),
        }
        if package.libraries:
            component["components"] = [
                {
                    "type": "file",
                    "bom-ref": f"{package.purl}#{library}",
                    "name": library,
                    "licenses": _licenses(licence),
                }
                for library, licence in sorted(package.libraries.items())
            ]
        components.append(component)
    document = {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": {"type": "application", "bom-ref": name, "name": name, "version": version}},
        "components": components,
    }
    return json.dumps(document, indent=1) + "\n"


def _licenses(licence: str) -> list[dict[str, object]]:
    if re.fullmatch(r"[\w.+-]+(?:\s+(?:AND|OR|WITH)\s+[\w.+-]+)*", licence) and licence != "unknown":
        return [{"expression": licence}]
    return [{"license": {"name": licence}}]


def main() -> None:
    folder = Path(sys.argv[1])
    found = packages()
    own = found["headrace"]
    everything = [*found.values(), *debian_packages()]
    (folder / "NOTICE").write_text(
        notice(f"What this installation of Headrace {own.version} holds", everything), "utf-8"
    )
    (folder / "sbom.cdx.json").write_text(sbom("headrace", own.version, everything), "utf-8")


if __name__ == "__main__":
    main()
