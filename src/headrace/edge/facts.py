"""Facts of a request before its authentication, gathered once by the outermost middleware."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from starlette.requests import HTTPConnection
from starlette.types import Scope

from headrace.audit import ANONYMOUS, ActorType, Who

if TYPE_CHECKING:
    from headrace.access import Caller
    from headrace.edge.limits import Allowance


@dataclass(slots=True)
class Facts:
    """One request, for the audit trail, the logs and the answer's headers.

    The first part is fixed when the request arrives. The rest is filled in later, for the middleware that runs after
    the route: the access log and the answer's headers.
    """

    method: str
    path: str
    request_id: str
    client_ip: str | None = None
    user_agent: str | None = None
    trace_id: str | None = None

    caller: "Caller | None" = None
    allowance: "Allowance | None" = None

    def anonymous(self) -> Who:
        """An anonymous principal with this request's address, agent, method and ids."""
        return Who(
            ANONYMOUS,
            ActorType.USER,
            client_ip=self.client_ip,
            user_agent=self.user_agent,
            request_method=self.method,
            request_id=self.request_id,
            trace_id=self.trace_id,
        )


def attach(scope: Scope, facts: Facts) -> None:
    scope.setdefault("state", {})["facts"] = facts


def facts_of(request: HTTPConnection) -> Facts:
    """The facts that the middleware of ``web.create_app`` gathered."""
    facts = request.state.facts
    assert isinstance(facts, Facts)
    return facts
