"""How kernels of public projects are called, and what each must give: no line in here is theirs."""

from __future__ import annotations

from . import candle, gpt_oss, mistral, mlx, pytorch, small_projects
from .recipe import Recipe, RecipeCall

RECIPES: tuple[Recipe, ...] = (
    *mlx.RECIPES,
    *candle.RECIPES,
    *mistral.RECIPES,
    *pytorch.RECIPES,
    *gpt_oss.RECIPES,
    *small_projects.RECIPES,
)

__all__ = ["RECIPES", "Recipe", "RecipeCall"]
