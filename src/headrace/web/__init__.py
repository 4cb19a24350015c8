"""The API as an ASGI app, and what belongs to its process as a whole."""
