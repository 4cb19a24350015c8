"""Errors of risks.

NotFound   RiskNotFound
Conflict   RiskIdTaken
"""

from headrace.errors import Conflict, NotFound


class RiskNotFound(NotFound):
    """There is no such risk."""

    code = "risk_not_found"


class RiskIdTaken(Conflict):
    """Another risk has this id: change that one, or choose another id."""

    code = "risk_id_taken"
