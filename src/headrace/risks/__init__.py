"""The ledger of known risks, for administrators."""

from typing import TYPE_CHECKING

from headrace import lazily

if TYPE_CHECKING:
    from headrace.risks.model import Category, Facts, Risk, RiskStatus, Severity, Square, Trace
    from headrace.risks.service import board, change_risk, create_risk, delete_risk, get_risk, list_risks, list_traces

__all__ = [
    "Category",
    "Facts",
    "Risk",
    "RiskStatus",
    "Severity",
    "Square",
    "Trace",
    "board",
    "change_risk",
    "create_risk",
    "delete_risk",
    "get_risk",
    "list_risks",
    "list_traces",
]

__getattr__ = lazily.names_of(
    __name__,
    {
        "model": "Category Facts Risk RiskStatus Severity Square Trace",
        "service": "board change_risk create_risk delete_risk get_risk list_risks list_traces",
    },
)
