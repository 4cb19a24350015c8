"""The eye: finds a mark in one picture and solves for what lies under it.

>>> detection = detect(picture)
>>> restoration = solve(picture, detection)

docs/why/eye-model-card.md says what the model was made from, how well it sees, and where it does not.
"""
