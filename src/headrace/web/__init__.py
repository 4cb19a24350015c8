"""The API as an ASGI app, with its middleware, connection limits and probes."""
