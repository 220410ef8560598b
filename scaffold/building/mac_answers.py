"""Makes queries for the platform give a Mac's answers, in a separate process that has the simulated device."""

from __future__ import annotations

import os
import platform
import sys
import sysconfig
from collections.abc import Callable, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any

_ANSWERS = {
    "system": "Darwin",
    "machine": "arm64",
    "processor": "arm",
    "release": "24.6.0",
    "platform": "macOS-15.6-arm64-arm-64bit",
    "mac_ver": ("15.6", ("", "", ""), "arm64"),
}
# The newest version that host code asks for (audit/running/host_code.py) and that is not newer than the answer.
MACOS_OF_HOST_CODE = "15.1"
_UNAME = os.uname_result(("Darwin", "Mac", "24.6.0", "Darwin Kernel Version 24.6.0", "arm64"))
# They get the true platform: they compile and load code for this machine.
_TRUE_FOR = frozenset({"mpsmith", "torch", "numpy", "setuptools", "distutils", "_pytest", *sys.stdlib_module_names})
# Skips tests by the version of macOS.
_TESTS_OF_TORCH = "torch.testing."


def answer_as_a_mac(project: Path) -> None:
    """Make `sys.platform`, `platform` and `os.uname` report Darwin and arm64, until the process ends.

    Modules outside `project` get the true platform while they are imported, because their files are of this system.
    """
    sysconfig.get_config_vars()  # reads a file that is named after the platform, once
    for name, answer in _ANSWERS.items():
        setattr(platform, name, _answering(getattr(platform, name), answer))
    os.uname = _answering(os.uname, _UNAME)
    sys.meta_path.insert(0, _Finder(project.resolve(), sys.platform))
    sys.platform = "darwin"


def _answering(original: Callable[..., Any], answer: object) -> Callable[..., Any]:
    def answered(*arguments: Any, **options: Any) -> Any:
        caller = str(sys._getframe(1).f_globals.get("__name__", ""))
        true = caller.partition(".")[0] in _TRUE_FOR and not caller.startswith(_TESTS_OF_TORCH)
        return original(*arguments, **options) if true else answer

    return answered


class _Finder(MetaPathFinder):
    """Uses the other finders; makes modules outside the project load with the true platform."""

    def __init__(self, project: Path, true: str) -> None:
        self._project = project
        self._true = true

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        for finder in sys.meta_path:
            find = getattr(finder, "find_spec", None)
            spec: ModuleSpec | None = find(name, path, target) if find and finder is not self else None
            if spec is None:
                continue
            if spec.loader is not None and spec.has_location and self._project not in Path(str(spec.origin)).parents:
                spec.loader = _PlatformRestorer(spec.loader, self._true)
            return spec
        return None


class _PlatformRestorer(Loader):
    """A loader that restores the true `sys.platform` while a module is executed."""

    def __init__(self, loader: Loader, true: str) -> None:
        self._loader = loader
        self._true = true

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        answered, sys.platform = sys.platform, self._true
        try:
            self._loader.exec_module(module)
        finally:
            sys.platform = answered
