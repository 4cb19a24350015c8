"""The app factory: routes, what stands around them, and how they are described."""

from collections.abc import Sequence

from fastapi import APIRouter, Depends, FastAPI
from fastapi.routing import iter_route_contexts
from starlette.middleware.cors import CORSMiddleware
from starlette.types import Scope

from headrace import __version__
from headrace.edge.cookies import CSRF_HEADER
from headrace.edge.idempotency import HEADER, REPLAYED
from headrace.edge.limits import Limiter
from headrace.edge.parameters import refuse_unknown_parameters
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


def create_app(services: Services, config: WebConfig, *, routers: Sequence[APIRouter] = ()) -> FastAPI:
    """The API with these routes. It opens and closes nothing: whoever made the services ends them."""
    app = FastAPI(
        title=openapi.TITLE,
        version=__version__,
        docs_url=None,
        redoc_url=None,
        openapi_url=None,
        redirect_slashes=False,
        generate_unique_id_function=openapi.operation_id,
    )
    app.state.services = services
    app.state.limiter = Limiter(services.db, services.limits)
    app.state.metrics = Metrics()
    app.state.probe = health.Probe(services.readiness)
    console = Console(config.console, config)
    own = [health.router, pages.router]
    own += [health.metrics_router] if config.metrics else []
    own += [] if console.is_built else [pages.home_router]
    for router in own:
        app.include_router(router)
    for router in routers:
        app.include_router(router, dependencies=[Depends(readable), Depends(refuse_unknown_parameters)])
    app.router.default = console.behind(app.router.default)
    app.openapi = openapi.describe(app, services)  # type: ignore[method-assign]
    rendering.install(app)
    _surround(app, config)
    return app


def _surround(app: FastAPI, config: WebConfig) -> None:
    # add_middleware puts the new one outside of those before it: read upwards.
    app.add_middleware(Head)
    app.add_middleware(LastResort)
    app.add_middleware(BodyLimit, config=config)
    if config.cors_origins:
        # Without credentials: our cookies are for our own origin, and programs elsewhere send a bearer token.
        app.add_middleware(
            CORSMiddleware,
            allow_origins=config.cors_origins,
            allow_methods=["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"],
            allow_headers=_CORS_SENT,
            expose_headers=_CORS_SEEN,
            max_age=600,
        )
    app.add_middleware(ResponseHeaders, config=config)
    app.add_middleware(RequestFacts, config=config, metrics=app.state.metrics, route_name=_RouteNames(app))


class _RouteNames:
    """The template of the path that a request matched (``/v1/tasks/{id}``): one name for all its values."""

    def __init__(self, app: FastAPI) -> None:
        # A route knows its path within its router; only the app knows where the router was put. Read as far as needed:
        # FastAPI makes each router ready when somebody comes to it, and to make all of them ready takes half a second.
        self._unread = iter_route_contexts(app.routes)
        self._names: dict[object, str] = {}

    def __call__(self, scope: Scope) -> str:
        endpoint = scope.get("endpoint")
        if endpoint is None:
            return "unmatched"
        while endpoint not in self._names:
            context = next(self._unread, None)
            if context is None:
                return "unmatched"
            if context.path_format is not None:
                self._names.setdefault(context.endpoint, context.path_format)
        return self._names[endpoint]
