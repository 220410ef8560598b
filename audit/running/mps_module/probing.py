"""Lists the rows of torch.mps, and probes one name. Both run in a worker process."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from ...store.records import ModuleRow, ModuleStatus

if TYPE_CHECKING:
    from .probe import Probed

LONGEST_DETAIL = 300


def listed(imports: tuple[str, ...]) -> list[str]:
    """The names of all rows: those of the table, then public names without a probe."""
    from .surface import public_names

    table = [row.name for row in _table(imports)]
    return [*table, *(name for name in public_names() if name not in table)]


def probed(name: str, imports: tuple[str, ...]) -> ModuleRow:
    """Probe one name and return its row."""
    from .probe import ProbeError
    from .surface import resolve

    probe = next((row for row in _table(imports) if row.name == name), None)
    if probe is None:
        return ModuleRow(name, ModuleStatus.NOT_PROBED, "new in this torch: no probe knows it")
    missing = [needed for needed in probe.needs if resolve(needed) is None]
    if missing:
        return ModuleRow(name, ModuleStatus.MISSING, f"this torch has no {', '.join(missing)}")
    try:
        probe.probe()
    except Exception as error:  # a user would see the same exception
        text = " ".join(str(error).split())
        kind = "" if isinstance(error, ProbeError) else f"{type(error).__name__}: "
        return ModuleRow(name, ModuleStatus.FAILS, f"{kind}{text}"[:LONGEST_DETAIL])
    return ModuleRow(name, ModuleStatus.WORKS)


def _table(imports: tuple[str, ...]) -> list[Probed]:
    from .probes import TABLE

    rows = list(TABLE)
    for package in imports:
        try:
            rows += getattr(importlib.import_module(package), "mpsmith_module_probes", ())
        except Exception:  # reported when the case sources were collected
            continue
    return rows
