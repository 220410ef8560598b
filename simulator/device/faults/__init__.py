"""Faults that can be injected into the simulated device, to test whether an audit finds them.

A fault wraps the kernel of one overload. Its text says what it does and for which calls:

    aten::exp: values when non_contiguous(self) and dtype(self, float16)

`conditions` defines the words after "when", `corruptions` those before it.
"""

from __future__ import annotations

from .arming import clear, inject
from .fault import Fault, Term

__all__ = ["Fault", "Term", "clear", "inject"]
