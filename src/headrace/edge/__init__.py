"""What every package's routes are built with: who is calling, paging, problems, idempotency, limits, entity tags."""

from typing import TYPE_CHECKING

from headrace import lazily

if TYPE_CHECKING:
    from headrace.edge.access import Admin, Again, Anyone, AuthenticateAgain, Perhaps, SignedIn, scoped
    from headrace.edge.bodies import body_at_most
    from headrace.edge.caller import Authenticate, Caller, Credentials, Role, Scope
    from headrace.edge.cookies import CSRF_HEADER, CookieConfig, forget, remember
    from headrace.edge.errors import AdminOnly, PreconditionFailed, ScopeMissing
    from headrace.edge.etags import ExpectedVersion, etag
    from headrace.edge.facts import Facts, facts_of
    from headrace.edge.idempotency import ONCE, Answer, Once, idempotent
    from headrace.edge.limits import LimitConfig, Limiter
    from headrace.edge.paging import Listing, Page, Paging
    from headrace.edge.problem_details import Problem, problems
    from headrace.edge.services import Db, Readiness, Services, services_of
    from headrace.edge.text import Text
    from headrace.edge.versions import check_version

__all__ = [
    "CSRF_HEADER",
    "ONCE",
    "Admin",
    "AdminOnly",
    "Again",
    "Answer",
    "Anyone",
    "Authenticate",
    "AuthenticateAgain",
    "Caller",
    "CookieConfig",
    "Credentials",
    "Db",
    "ExpectedVersion",
    "Facts",
    "LimitConfig",
    "Limiter",
    "Listing",
    "Once",
    "Page",
    "Paging",
    "Perhaps",
    "PreconditionFailed",
    "Problem",
    "Readiness",
    "Role",
    "Scope",
    "ScopeMissing",
    "Services",
    "SignedIn",
    "Text",
    "body_at_most",
    "check_version",
    "etag",
    "facts_of",
    "forget",
    "idempotent",
    "problems",
    "remember",
    "scoped",
    "services_of",
]

__getattr__ = lazily.names_of(
    __name__,
    {
        "access": "Admin Again Anyone AuthenticateAgain Perhaps SignedIn scoped",
        "bodies": "body_at_most",
        "caller": "Authenticate Caller Credentials Role Scope",
        "cookies": "CSRF_HEADER CookieConfig forget remember",
        "errors": "AdminOnly PreconditionFailed ScopeMissing",
        "etags": "ExpectedVersion etag",
        "facts": "Facts facts_of",
        "idempotency": "ONCE Answer Once idempotent",
        "limits": "LimitConfig Limiter",
        "paging": "Listing Page Paging",
        "problem_details": "Problem problems",
        "services": "Db Readiness Services services_of",
        "text": "Text",
        "versions": "check_version",
    },
)
