"""Configuration of the web app."""

from dataclasses import dataclass
from ipaddress import IPv4Network, IPv6Network
from pathlib import Path


@dataclass(frozen=True, slots=True)
class WebConfig:
    """Origins, proxies and limits of the API."""

    trusted_proxies: tuple[IPv4Network | IPv6Network, ...] = ()
    cors_origins: tuple[str, ...] = ()
    body_limit: int = 1024 * 1024
    https: bool = False
    metrics: bool = True  # serve /metrics here; otherwise on a separate port
    streamed_paths: tuple[str, ...] = ()
    """Regular expressions for `METHOD /path`: routes that stream the body and limit it themselves."""
    console: Path | None = None
    """The folder of the built console; if missing or empty, a plain page is served."""
    file_origins: tuple[str, ...] = ()
    """Other origins of files for browsers: the bucket, if it serves links itself."""
