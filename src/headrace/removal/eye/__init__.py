"""The eye: finds a mark in one picture and solves for what lies under it.

>>> sight = look(picture)
>>> restoration = solve(picture, sight)

MODEL_CARD.md beside this file says what the model was made from, how well it sees, and where it does not.
"""

from headrace.removal.eye.looking import look
from headrace.removal.eye.model import Hints, Region, Restoration, Sight
from headrace.removal.eye.solving import solve

__all__ = ["Hints", "Region", "Restoration", "Sight", "look", "solve"]
