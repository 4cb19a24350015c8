"""Why a document was left as it is."""

from headrace.removal.order import FailureCode


class NotCleaned(Exception):
    """Nothing was written, or what was written is not good."""

    def __init__(self, code: FailureCode, reason: str) -> None:
        super().__init__(reason)
        self.code, self.reason = code, reason
