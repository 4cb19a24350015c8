"""Settings in, a running role out: `api`, `worker`, `scheduler`, `relay`, `library`.

The one place that knows settings and all packages. Beside the roles: combinations of packages (followers, erasers,
consumers, retention, routers), and each package's config from the settings. A module for each, so that a worker does
not load the web framework for its followers.
"""
