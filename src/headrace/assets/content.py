"""What is handed out, and how it is called: without the web, for those who only remove it."""

from dataclasses import dataclass
from urllib.parse import quote

# What a browser may show in its own window; everything else is saved.
_SHOWN = frozenset({"image/jpeg", "image/png", "image/webp", "image/gif", "video/mp4", "video/webm"})


@dataclass(frozen=True, slots=True)
class Content:
    """One object, as it is handed out."""

    name: str  # in storage
    size: int
    mime_type: str
    etag: str  # without quotes
    file_name: str
    inline: bool = False

    def headers(self) -> dict[str, str]:
        """What also the storage's own links answer with."""
        shown = self.inline and self.mime_type in _SHOWN
        return {"Content-Type": self.mime_type, "Content-Disposition": disposition(self.file_name, inline=shown)}


def disposition(name: str, *, inline: bool) -> str:
    """The header with any name in it: plain for old readers, RFC 8187 for all others."""
    plain_name = "".join(each if each.isascii() and each not in '"\\%' and each.isprintable() else "_" for each in name)
    kind = "inline" if inline else "attachment"
    encoded = quote(name, safe="!#$&+-.^_`|~")
    return f"{kind}; filename=\"{plain_name}\"; filename*=UTF-8''{encoded}"
