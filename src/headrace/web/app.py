"""The app factory: routes, middleware and the OpenAPI description."""

from collections.abc import Sequence
from typing import Any

from fastapi import Depends, FastAPI
from starlette.middleware.cors import CORSMiddleware
from starlette.types import Scope

from headrace import __version__
from headrace.edge.cookies import CSRF_HEADER
from headrace.edge.idempotency import HEADER, REPLAYED
from headrace.edge.limits import Limiter
from headrace.edge.parameters import refuse_unknown_parameters
from headrace.edge.routing import Route, Router, by_path
from headrace.edge.services import Services
from headrace.web import health, openapi, pages, rendering
from headrace.web.bodies import readable
from headrace.web.config import WebConfig
from headrace.web.console import Console
from headrace.web.metrics import Metrics
from headrace.web.middleware import REQUEST_ID, BodyLimit, Head, LastResort, RequestFacts, ResponseHeaders

_CORS_SENT = [
    "Authorization",
    "Content-Type",
    HEADER,
    "If-Match",
    "Last-Event-ID",
    CSRF_HEADER,
    REQUEST_ID,
    "traceparent",
]
_CORS_SEEN = [REQUEST_ID, "ETag", "Location", "Retry-After", REPLAYED, "RateLimit", "RateLimit-Policy"]


def create_app(services: Services, config: WebConfig, *, routers: Sequence[Router] = ()) -> FastAPI:
    """Create the API with these routes. It opens and closes nothing: the caller owns the services."""
    app = FastAPI(
        title=openapi.TITLE,
        version=__version__,
        docs_url=None,
        redoc_url=None,
        openapi_url=None,
        redirect_slashes=False,
    )
    app.state.services = services
    app.state.limiter = Limiter(services.db, services.limits)
    app.state.metrics = Metrics()
    app.state.probe = health.Probe(services.readiness)
    console = Console(config.console, config)
    own = [health.router, pages.router]
    own += [health.metrics_router] if config.metrics else []
    own += [] if console.is_built else [pages.home_router]
    _add(app, own)
    _add(app, routers, Depends(readable), Depends(refuse_unknown_parameters))
    app.router.default = console.behind(app.router.default)
    app.router.middleware_stack = by_path(app.router.routes, app.router.middleware_stack)  # type: ignore[assignment]
    app.openapi = openapi.describe(app, services)  # type: ignore[method-assign]
    rendering.install(app)
    _add_middleware(app, config)
    return app


def _add(app: FastAPI, routers: Sequence[Router], *dependencies: Any) -> None:
    for router in routers:
        app.router.routes.extend(
            route.below("", dependencies, generate_unique_id_function=openapi.operation_id) for route in router
        )


def _add_middleware(app: FastAPI, config: WebConfig) -> None:
    # add_middleware wraps the earlier ones: the last one added is the outermost.
    app.add_middleware(Head)
    app.add_middleware(LastResort)
    app.add_middleware(BodyLimit, config=config)
    if config.cors_origins:
        # Without credentials: cookies are for our own origin, other programs send a bearer token.
        app.add_middleware(
            CORSMiddleware,
            allow_origins=config.cors_origins,
            allow_methods=["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"],
            allow_headers=_CORS_SENT,
            expose_headers=_CORS_SEEN,
            max_age=600,
        )
    app.add_middleware(ResponseHeaders, config=config)
    app.add_middleware(RequestFacts, config=config, metrics=app.state.metrics, route_name=_route_name)


def _route_name(scope: Scope) -> str:
    """The path template of the matched route (``/v1/tasks/{id}``), for logs and metrics."""
    route = scope.get("route")
    return route.path_format if isinstance(route, Route) else "unmatched"
