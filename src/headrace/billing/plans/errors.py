"""Errors of plans."""

from headrace.errors import Conflict, Invalid, NotFound


class PlanNotFound(NotFound):
    """There is no such plan: `GET /v1/plans` lists them."""

    code = "plan_not_found"


class PlanNameTaken(Conflict):
    """Another plan has this name."""

    code = "plan_name_taken"


class PlanInUse(Conflict):
    """This plan is or was in use: set `is_active` to false instead, which ends its sale."""

    code = "plan_in_use"


class PlanInvalid(Invalid):
    """A property of the plan is not valid."""

    code = "plan_invalid"
