"""What the web app is told about where it stands."""

from dataclasses import dataclass
from ipaddress import IPv4Network, IPv6Network
from pathlib import Path


@dataclass(frozen=True, slots=True)
class WebConfig:
    """How clients reach the API, and how much they may send."""

    trusted_proxies: tuple[IPv4Network | IPv6Network, ...] = ()
    cors_origins: tuple[str, ...] = ()
    body_limit: int = 1024 * 1024
    https: bool = False
    metrics: bool = True  # whether /metrics is here; otherwise it has a port of its own
    streamed_paths: tuple[str, ...] = ()
    """Regular expressions for `METHOD /path`: routes that read the body piece by piece and limit it themselves."""
    console: Path | None = None
    """The folder of the built console; without one, or when it is empty, a plain page stands in."""
    file_origins: tuple[str, ...] = ()
    """Where browsers get files from beside ourselves: the bucket, where it answers links itself."""
