"""Routes that are built on their first use.

FastAPI reads the signatures of an endpoint and its dependencies, and builds a validator for each parameter and answer,
when a route is declared and again for each include of its router. For all our routes that takes half of the start-up
time of an API, and most processes serve only a few routes.
"""

from collections.abc import Callable, Coroutine, Iterator, Sequence
from typing import Any, Self

from fastapi import APIRouter, params
from fastapi.routing import APIRoute
from starlette.routing import BaseRoute, Match, compile_path, get_name
from starlette.types import ASGIApp, Receive, Scope, Send

from headrace.edge.solving import planned

_MATCHED_BY = frozenset({"path_regex", "path_format", "param_convertors"})


class Route(APIRoute):
    """Builds everything except its path, methods, endpoint and place in the schema on first access."""

    def __init__(self, path: str, endpoint: Callable[..., Any], **options: Any) -> None:
        self._options = options
        self._is_ready = False
        self.path = path
        self.endpoint = endpoint
        self.name = options.get("name") or get_name(endpoint)
        self.methods = {method.upper() for method in options.get("methods") or ("GET",)}
        self.include_in_schema = options.get("include_in_schema", True)
        self._beginning = path.partition("{")[0]

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        # Routes are tried one after the other: the beginning of the path rules most of them out.
        if not scope.get("root_path") and not scope["path"].startswith(self._beginning):
            return Match.NONE, {}
        return super().matches(scope)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or self._is_ready:
            raise AttributeError(name)
        if name in _MATCHED_BY:
            self.path_regex, self.path_format, self.param_convertors = compile_path(self.path)
        else:
            self._is_ready = True
            super().__init__(self.path, self.endpoint, **self._options)
            self.app = planned(self) or self.app
        return getattr(self, name)

    def below(self, prefix: str, dependencies: Sequence[params.Depends], **options: Any) -> Self:
        """A copy under this prefix with these dependencies."""
        together = [*dependencies, *(self._options.get("dependencies") or ())]
        return type(self)(prefix + self.path, self.endpoint, **{**self._options, "dependencies": together, **options})


def by_path(
    routes: Sequence[BaseRoute], otherwise: ASGIApp
) -> Callable[[Scope, Receive, Send], Coroutine[Any, Any, None]]:
    """Looks up routes without parameters by their path, and tries the others one after the other (``otherwise``)."""
    exact: dict[str, list[Route]] = {}
    for route in routes:
        if isinstance(route, Route) and "{" not in route.path:
            exact.setdefault(route.path, []).append(route)

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and not scope.get("root_path"):
            for route in exact.get(scope["path"], ()):
                match, found = route.matches(scope)
                if match is Match.FULL:
                    scope.update(found)
                    await route.handle(scope, receive, send)
                    return
        await otherwise(scope, receive, send)

    return app


class Router(APIRouter):
    """Routes of one resource, or of several parts of it."""

    def __init__(self, **options: Any) -> None:
        super().__init__(route_class=Route, **options)

    def include(self, *parts: "Router") -> None:
        """Include the routes of these parts, with this router's prefix and dependencies."""
        for part in parts:
            self.routes.extend(route.below(self.prefix, self.dependencies) for route in part)

    def __iter__(self) -> Iterator[Route]:
        for route in self.routes:
            assert isinstance(route, Route)
            yield route
