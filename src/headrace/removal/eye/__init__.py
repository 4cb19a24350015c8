"""The eye: finds a mark in one picture and solves for what lies under it.

>>> sight = look(picture)
>>> restoration = solve(picture, sight)

Who knows where the mark is says so, and it is looked for there alone, and seen more easily:

>>> sight = look(picture, hints=Hints(boxes=((900, 560, 240, 60),)))

MODEL_CARD.md beside this file says what the model was made from, how well it sees, and where it does not.
"""

from headrace.removal.eye.hinting import Hints
from headrace.removal.eye.looking import look
from headrace.removal.eye.model import Region, Restoration, Sight
from headrace.removal.eye.solving import solve

__all__ = ["Hints", "Region", "Restoration", "Sight", "look", "solve"]
