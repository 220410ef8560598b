"""Faults that the simulated device commits on purpose: what an auditor has to find is put in for it.

A fault wraps the kernel of one overload. Its text says when it acts and what it does:

    aten::exp: values when non_contiguous(self) and dtype(self, float16)

`conditions` has every word after "when", `corruptions` every word before it.
"""

from __future__ import annotations

from .arming import clear, inject
from .fault import Fault, Term

__all__ = ["Fault", "Term", "clear", "inject"]
