"""The routes as an app for one client in the same process: no sockets, no limits, no console.

Foreseen errors are not turned into problems: they leave the app as they were raised, and the client catches them.
"""

from collections.abc import Sequence

from fastapi import Depends, FastAPI

from headrace.database import Database
from headrace.edge.limits import Allowance, LimitConfig, Limiter
from headrace.edge.parameters import refuse_unknown_parameters
from headrace.edge.routing import Router
from headrace.edge.services import Services
from headrace.web import rendering
from headrace.web.bodies import readable


class _Unlimited(Limiter):
    def __init__(self, db: Database) -> None:
        super().__init__(db, LimitConfig())

    async def check(self, bucket: str) -> Allowance | None:  # noqa: ARG002 - the client is the operator
        return None


def create_inprocess_app(services: Services, routers: Sequence[Router]) -> FastAPI:
    app = FastAPI(docs_url=None, redoc_url=None, openapi_url=None, redirect_slashes=False)
    app.state.services = services
    app.state.limiter = _Unlimited(services.db)
    dependencies = (Depends(readable), Depends(refuse_unknown_parameters))
    for router in routers:
        app.router.routes.extend(route.below("", dependencies) for route in router)
    rendering.install_for_requests(app)
    return app
