"""Calls a function as soon as Python has loaded a module, without loading it."""

from __future__ import annotations

import importlib.abc
import importlib.util
import sys
from collections.abc import Callable, Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType


def on_import(module: str, action: Callable[[], None]) -> None:
    """Call the action now if the module is loaded, or else as soon as it is; a second action replaces the first."""
    sys.meta_path[:] = [finder for finder in sys.meta_path if not (isinstance(finder, _Finder) and finder.of == module)]
    if module in sys.modules:
        action()
    else:
        sys.meta_path.insert(0, _Finder(module, action))


class _Finder(importlib.abc.MetaPathFinder):
    def __init__(self, module: str, action: Callable[[], None]) -> None:
        self.of = module
        self.action = action

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        if name != self.of:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.loader is not None:
            execute = spec.loader.exec_module

            def execute_and_act(module: ModuleType) -> None:
                execute(module)
                self.action()

            spec.loader.exec_module = execute_and_act  # type: ignore[method-assign]
        return spec
