"""The console's sample picture, with which everybody may try a removal: it is not charged."""

SAMPLE_SHA256 = "eb94431c7c20f2f5f16855e260b0469f28ca0bc728eb575590e2063d2a718f67"


def is_sample(sha256: str | None) -> bool:
    return sha256 == SAMPLE_SHA256
