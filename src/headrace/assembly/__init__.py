"""Combinations of all packages: followers, erasers, retention, config keys, routers.

The one place that knows them all, for commands, for programs that embed Headrace, and for tests. A module for each
kind, so that a worker does not load the web framework for its followers.
"""
