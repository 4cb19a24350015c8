"""How to call each operation of the API so that it changes something."""

from tests.web.recipes import accounts
from tests.web.recipes.base import RECIPES, Sent
from tests.web.recipes.work import NOT_CHANGES

__all__ = ["NOT_CHANGES", "RECIPES", "Sent", "accounts"]  # accounts and work fill RECIPES
