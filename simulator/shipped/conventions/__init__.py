"""The launch conventions: for each overload, the planner that launches its kernels like torch's host code.

A family is a module with one table `PLANNERS`, overload -> planner. Here they are joined; an overload has one planner.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from importlib import import_module

from ..plan import Planner


def join(tables: Iterable[Mapping[str, Planner]]) -> dict[str, Planner]:
    """Join several tables.

    Raises:
        ValueError: two tables have a planner for one overload.
    """
    joined: dict[str, Planner] = {}
    for table in tables:
        twice = sorted(joined.keys() & table.keys())
        if twice:
            raise ValueError(f"two conventions plan {', '.join(twice)}")
        joined.update(table)
    return joined


# Modules of this folder with a table `PLANNERS`, in alphabetical order.
FAMILIES = (
    "advanced_indexing",
    "along_index",
    "argument_reductions",
    "assertions",
    "attention",
    "binary",
    "bucketing",
    "concatenation",
    "copies",
    "derived",
    "distances",
    "embeddings",
    "factorizations",
    "fills",
    "flips",
    "gated_linear",
    "gather_scatter",
    "graph_operators",
    "grid_sampler",
    "losses",
    "nonzero",
    "normalizations",
    "optimizers",
    "packed_products",
    "padding",
    "parameters",
    "pooling",
    "products",
    "random",
    "ranges",
    "reductions",
    "scans",
    "softmax",
    "sorting",
    "ternary",
    "triangles",
    "unary",
    "unfolding",
    "upsample",
    "vector_norms",
    "vectors",
)

PLANNERS: dict[str, Planner] = join(import_module(f".{family}", __name__).PLANNERS for family in FAMILIES)
