"""The launch conventions: for each overload, the planner that launches its kernels like torch's host code.

A family is a module with one table `PLANNERS`, overload -> planner. Here they are joined; an overload has one planner.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from importlib import import_module
from pkgutil import iter_modules

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


_MODULES = {module_info.name: import_module(f".{module_info.name}", __name__) for module_info in iter_modules(__path__)}
# The modules of this folder with a table `PLANNERS`, in alphabetical order.
FAMILIES = tuple(name for name, module in _MODULES.items() if hasattr(module, "PLANNERS"))

PLANNERS: dict[str, Planner] = join(_MODULES[family].PLANNERS for family in FAMILIES)
