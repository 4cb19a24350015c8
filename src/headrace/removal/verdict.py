"""One verdict on a result, for the command and the service: by its confidence and the check of the written file."""

from enum import StrEnum

MIN_CLEAN_CONFIDENCE = 0.65
MIN_CONFIDENCE = 0.5  # less is more likely bad than good: not charged


class Verdict(StrEnum):
    CLEAN = "CLEAN"
    LOOK = "LOOK"  # handed out and charged; worth a look
    POOR = "POOR"  # not handed out, unless the order accepts poor results


def of_confidence(confidence: float) -> Verdict:
    if confidence < MIN_CONFIDENCE:
        return Verdict.POOR
    return Verdict.CLEAN if confidence >= MIN_CLEAN_CONFIDENCE else Verdict.LOOK
