"""How to call kernels of public projects, and the results that they must give."""

from __future__ import annotations

from . import packages, pytorch
from .recipe import Recipe, RecipeCall

RECIPES: tuple[Recipe, ...] = (*pytorch.RECIPES, *packages.RECIPES)

__all__ = ["RECIPES", "Recipe", "RecipeCall"]
