"""How MLX's kernels are called."""

from __future__ import annotations

from . import mlx_elementwise, mlx_rows
from .recipe import Recipe

RECIPES: tuple[Recipe, ...] = (*mlx_elementwise.RECIPES, *mlx_rows.RECIPES)
