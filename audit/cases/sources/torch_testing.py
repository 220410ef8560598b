"""The tables of torch's own tests, loaded without torch.compile, which they name for one list of devices.

It would take longer to load than the tables, in every worker and after every worker's death.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

_COMPILER = "torch._inductor.utils"
_GPU_TYPES = ["cuda", "mps", "xpu", "mtia"]


class _StandIn(ModuleType):
    """Has the list of devices; whatever else is asked of it comes from the module itself."""

    GPU_TYPES = _GPU_TYPES

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        sys.modules.pop(_COMPILER, None)
        return getattr(importlib.import_module(_COMPILER), name)


@contextmanager
def without_the_compiler() -> Iterator[None]:
    """Inside, importing `torch.testing._internal` leaves torch.compile alone, unless it is there already."""
    if _COMPILER in sys.modules:
        yield
        return
    stand_in = _StandIn(_COMPILER)
    sys.modules[_COMPILER] = stand_in
    try:
        yield
    finally:
        if sys.modules.get(_COMPILER) is stand_in:
            del sys.modules[_COMPILER]
