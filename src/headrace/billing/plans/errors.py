"""What can go wrong with plans."""

from headrace.errors import Conflict, Invalid, NotFound


class PlanNotFound(NotFound):
    """There is no such plan: `GET /v1/plans` lists them."""

    code = "plan_not_found"


class PlanNameTaken(Conflict):
    """Another plan has this name."""

    code = "plan_name_taken"


class PlanInUse(Conflict):
    """Somebody has this plan, or had it: set `is_active` to false instead, and nobody can buy it any more."""

    code = "plan_in_use"


class PlanInvalid(Invalid):
    """A plan cannot be like this."""

    code = "plan_invalid"
