"""An inspector without children, for tests that are about anything but what is in a file."""

# ruff: noqa: ARG002 - the port's parameters

from pathlib import Path

from headrace.assets.inspection.errors import FileEmpty, FileUnknown
from headrace.assets.inspection.model import Facts, FileLimits, Format


class PlainInspector:
    async def inspect(
        self, path: Path, *, limits: FileLimits, tenant: str | None = None, password: str | None = None
    ) -> Facts:
        content = path.read_bytes()[:8]
        if not content:
            raise FileEmpty
        if content[:4] != b"\x89PNG":
            raise FileUnknown
        return Facts(Format.PNG.media_type, Format.PNG, Format.PNG.mime_type, width=2, height=2, frames=1)

    async def preview(
        self, path: Path, facts: Facts, target: Path, *, longest_side: int, tenant: str | None = None
    ) -> None:
        target.write_bytes(b"RIFF....WEBP")

    async def draw_page(
        self,
        path: Path,
        number: int,
        target: Path,
        *,
        longest_side: int,
        tenant: str | None = None,
        owner: str | None = None,
    ) -> bool:
        return False

    async def as_pdf(self, path: Path, kind: str, target: Path, *, folder: Path, tenant: str | None = None) -> bool:
        return False

    async def strip_location(self, path: Path, target: Path, *, tenant: str | None = None) -> bool:
        return False
