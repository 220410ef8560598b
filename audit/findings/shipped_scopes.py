"""Of what releases, sources and dtypes rules about shipped kernels speak."""

from __future__ import annotations

from .rules import HALVES

ANY_RELEASE = ("*",)
# The releases whose kernels were looked at: what is true of both says nothing of others.
BOTH = ("2.13.0", "2.15.0")
SPECIAL = ("special values", "schema special values", "module special values", "known wrong")
FLOATS = ("float32", *HALVES)
SIGNED = ("int8", "int16", "int32", "int64")
INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "bool")
