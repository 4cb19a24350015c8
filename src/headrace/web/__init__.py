"""The API as an ASGI app, and what belongs to its process as a whole."""

from headrace.web.app import create_app
from headrace.web.config import WebConfig

__all__ = ["WebConfig", "create_app"]
