"""Lets the torch of another environment say that it is the release whose wheel this module came with.

For tests of what is done with several releases: an index with other releases of a torch for the CPU cannot be had
everywhere, and what they compute is not asked there. Nothing but the version is another one.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.metadata import version
from types import ModuleType

VERSION = "torch.version"


class OtherVersion(MetaPathFinder):
    """Finds torch.version as it is, and changes what it says."""

    def __init__(self) -> None:
        self._looking = False

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The module's own spec, with a loader that sets the version afterwards."""
        if name != VERSION or self._looking:
            return None
        self._looking = True
        spec = importlib.util.find_spec(name)
        self._looking = False
        assert spec is not None
        assert spec.loader is not None
        execute = spec.loader.exec_module

        def execute_and_rename(module: ModuleType) -> None:
            execute(module)
            vars(module)["__version__"] = version("torch")

        spec.loader.exec_module = execute_and_rename  # type: ignore[method-assign]
        return spec


sys.meta_path.insert(0, OtherVersion())
