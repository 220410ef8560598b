"""The tables of a results store, and the version number that a file must have."""

from __future__ import annotations

from pathlib import Path

from ..model.selection import DTYPES

APPLICATION_ID = 0x6D70736D  # "mpsm": distinguishes our files from other SQLite databases
VERSION = 4

SCHEMA = Path(__file__).with_name("schema.sql").read_text("utf-8")

GROUP_COLUMNS = "g.source, g.operator, g.variant, g.dtype, g.mode"
_DTYPE_ORDER = " ".join(f"WHEN '{dtype}' THEN {position}" for position, dtype in enumerate(DTYPES))
# Groups are planned in an order that spreads the work. Reports read them by name instead, so that a report depends
# only on what was measured. Dtypes are in the order of DTYPES.
BY_NAME = f"g.source, g.operator, g.variant, CASE g.dtype {_DTYPE_ORDER} ELSE {len(DTYPES)} END, g.dtype, g.mode"
