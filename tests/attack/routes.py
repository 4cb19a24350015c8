"""Every route as the OpenAPI describes it, and who may call it by rule.

The rules are written from the outside, by path and method, and know nothing of the dependencies that the code declares:
a route that forgot its own is found. A new route under a known path is attacked without anybody's doing; one that no
rule fits fails the test with the words of what to declare here.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from fastapi import FastAPI

from headrace.access import Scope

ADMIN, SESSION, ANY = "an administrator", "a session", "anybody known"

# Routes that ask for no credential, with the reason.
PUBLIC = {
    "POST /v1/auth/register": "nobody has an account before",
    "POST /v1/auth/login": "it gives the credential",
    "POST /v1/auth/wechat": "it gives the credential",
    "POST /v1/auth/password/forgot": "who forgot it has no session; the answer is always the same",
    "POST /v1/auth/password/reset": "the token of the e-mail is the credential",
    "POST /v1/auth/email/confirm": "the token of the e-mail is the credential",
    "GET /v1/content/{token}": "the token is the credential: signed, for one file, until it expires",
    "GET /v1/capabilities": "what everybody may know of this deployment",
    "GET /v1/plans": "prices are seen before there is an account",
    "POST /v1/payments/wechat/notify": "WeChat Pay has no account: its signature is what counts",
}
# What an API key may do is named after the noun of the path.
NOUNS = {
    "api-keys": "account",
    "assets": "files",
    "audit": "audit",
    "entitlements": "billing",
    "executions": "schedules",
    "locks": "locks",
    "payments": "billing",
    "notifications": "notifications",
    "queues": "tasks",
    "removals": "tasks",
    "results": "tasks",
    "schedules": "schedules",
    "subscriptions": "billing",
    "sessions": "account",
    "task-types": "tasks",
    "tasks": "tasks",
    "usage": "billing",
    "webhooks": "webhooks",
    "uploads": "files",
}
# Where path and method say too little.
NEEDS = {
    "GET /v1/me": ANY,
    "GET /v1/me/views": Scope.ACCOUNT_READ,
    "PUT /v1/me/views": Scope.ACCOUNT_WRITE,
    "GET /v1/event-types": ANY,
    "PATCH /v1/me": SESSION,
    "POST /v1/auth/logout": SESSION,
    "POST /v1/auth/password": SESSION,
    "POST /v1/me/deletion": SESSION,
    "POST /v1/me/email": SESSION,
    "GET /v1/me/second-factor": ANY,
    "POST /v1/me/second-factor": SESSION,
    "POST /v1/me/second-factor/enable": SESSION,
    "POST /v1/me/second-factor/disable": SESSION,
    "POST /v1/me/second-factor/recovery-codes": SESSION,
    "POST /v1/assets/{asset_id}/links": Scope.FILES_READ,  # to read is what it allows
    "POST /v1/tasks/{task_id}/result/links": Scope.TASKS_READ,
    "POST /v1/assets/{asset_id}/detect": Scope.TASKS_WRITE,  # it makes a task
    "POST /v1/removals/quote": Scope.TASKS_READ,
    "GET /v1/removals/not-ordered": Scope.FILES_READ,  # it shows files
    "POST /v1/schedules/preview": Scope.SCHEDULES_READ,
    "POST /v1/locks/force-release": ADMIN,
    "POST /v1/queues/{name}/pause": ADMIN,
    "POST /v1/queues/{name}/resume": ADMIN,
    "PUT /v1/queues/{name}/limit": ADMIN,
    "GET /v1/workers": ADMIN,
}
# Changes that neither name a row in the path nor create one, and whose they are.
OF_CALLER = {
    "DELETE /v1/sessions": "the caller's own, all but this one",
    "PATCH /v1/me": "the caller's own",
    "PUT /v1/me/views": "the caller's own",
    "POST /v1/schedules/preview": "nothing is stored",
    "POST /v1/removals/quote": "nothing is stored",
    "POST /v1/notifications/read-all": "the caller's own",
    "PUT /v1/notifications/language": "the caller's own",
}
# Fields of a body that only administrators may send: test_only_an_administrator_submits_for_somebody_else.
FOR_ADMINS = {("POST /v1/tasks", "user_id")}
# The body names a row: a foreign one must look like none.
BY_BODY = {"POST /v1/locks/renew", "POST /v1/locks/release", "POST /v1/removals", "POST /v1/removals/quote"}
# Names in paths that say whose row it is: the row of somebody else must look like none.
OWNED = {
    "order_id", "subscription_id", "entitlement_id", "task_id", "schedule_id", "execution_id", "session_id",
    "api_key_id", "event_id", "endpoint_id", "delivery_id", "notification_id", "asset_id", "upload_id",
}  # fmt: skip
# Names in paths of what belongs to nobody; only administrators come to it.
SHARED = {"user_id", "plan_id", "risk_id", "archive_id", "outbox_event_id", "key", "name"}
IN_OWNED = {"number", "page"}  # of a part, of a document: counts within what the path names before it
TOKENS = {"token"}  # a secret in itself


@dataclass(frozen=True, slots=True)
class Route:
    method: str
    path: str
    described: dict[str, Any]

    @property
    def name(self) -> str:
        return f"{self.method} {self.path}"

    @property
    def changes(self) -> bool:
        return self.method not in ("GET", "HEAD")

    @property
    def streams(self) -> bool:
        return "text/event-stream" in self.described["responses"].get("200", {}).get("content", {})

    def parameters(self, place: str) -> list[str]:
        return [each["name"] for each in self.described.get("parameters", ()) if each["in"] == place]

    @property
    def owned(self) -> list[str]:
        return [name for name in self.parameters("path") if name in OWNED]


def routes_of(app: FastAPI) -> Iterator[Route]:
    document = app.openapi()
    for path, methods in document["paths"].items():
        for method, described in methods.items():
            body = resolved(described.get("requestBody", {}), document["components"]["schemas"])
            yield Route(method.upper(), path, {**described, "requestBody": body})


def resolved(part: Any, schemas: dict[str, Any], depth: int = 0) -> Any:
    """The same with what its references name in their place; schemas that hold themselves end at some depth."""
    if isinstance(part, list):
        return [resolved(each, schemas, depth) for each in part]
    if not isinstance(part, dict):
        return part
    if not isinstance(reference := part.get("$ref"), str):
        return {name: resolved(each, schemas, depth) for name, each in part.items()}
    return resolved(schemas[reference.rpartition("/")[2]], schemas, depth + 1) if depth < 8 else {}


class Unclassified(AssertionError):
    pass


def needs(route: Route) -> str | None:
    """What a caller must be or have: ADMIN, SESSION, ANY, a scope, or None for nothing."""
    if route.name in PUBLIC:
        return None
    if not route.described.get("security"):
        raise Unclassified(f"{route.name} asks for no credential: say in PUBLIC of tests/attack/routes.py why")
    if needed := NEEDS.get(route.name):
        return needed
    noun = route.path.split("/")[2]
    if noun == "admin":
        return ADMIN
    if noun not in NOUNS:
        raise Unclassified(f"{route.name}: add {noun!r} to NOUNS of tests/attack/routes.py, or the route to NEEDS")
    return Scope(f"{NOUNS[noun]}:{'write' if route.changes else 'read'}")


def check_names(route: Route) -> None:
    """Every name in the path is known to be somebody's or nobody's, and so is every row that a body may name."""
    for name in route.parameters("path"):
        if name in IN_OWNED | TOKENS:
            continue
        if name not in OWNED | SHARED:
            raise Unclassified(f"{route.name}: say in OWNED or SHARED of tests/attack/routes.py what {{{name}}} names")
        if name in SHARED and needs(route) != ADMIN:
            raise Unclassified(
                f"{route.name}: {{{name}}} is nobody's, so only administrators may come to it; or is it OWNED?"
            )
    if needs(route) in (None, ADMIN, SESSION):
        return
    for name in body_names(route):
        if name.endswith(("_id", "_ids")) and route.name not in BY_BODY and (route.name, name) not in FOR_ADMINS:
            raise Unclassified(
                f"{route.name}: its body names a row by {name!r}: add the route to BY_BODY, with a foreign one"
            )
    told = route.name in OF_CALLER or route.name in BY_BODY or "201" in route.described["responses"]
    if route.changes and not route.owned and not told:
        raise Unclassified(
            f"{route.name} changes something: whose? Add it to OF_CALLER or BY_BODY of tests/attack/routes.py"
        )


def body_names(route: Route) -> list[str]:
    """The fields of the body, as far as the schema names them."""
    content = route.described.get("requestBody", {}).get("content", {}).get("application/json", {})
    found: list[str] = []
    waiting = [content.get("schema", {})]
    while waiting:
        schema = waiting.pop()
        found += schema.get("properties", {})
        waiting += [*schema.get("properties", {}).values(), *schema.get("anyOf", ())]
        if "items" in schema:
            waiting.append(schema["items"])
    return found
