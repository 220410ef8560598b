"""Makes every Python process with this folder on PYTHONPATH say that its system is macOS, for `make test` on Linux.

torch has mps built in, as on a Mac, and no device is there: the suite of a Mac whose GPU is not usable. What needs
Linux must skip. Libraries whose binaries are those of Linux are imported on Linux.
"""

from __future__ import annotations

import importlib.util
import platform
import sys
import sysconfig
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

NATIVE = {"torch", "psutil", "numpy", "ctypes.util"}
MACHINE = platform.machine()


def say(name: str, system: str, machine: str) -> None:
    """What Python says of the system."""
    sys.platform = name
    platform.system = lambda: system
    platform.machine = lambda: machine


class OnLinux(MetaPathFinder):
    """Imports each of NATIVE as on Linux, and corrects torch afterwards."""

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The module's own spec, with another way to execute it."""
        if name not in NATIVE:
            return None
        NATIVE.remove(name)
        before = sys.platform
        say("linux", "Linux", MACHINE)
        spec = importlib.util.find_spec(name)
        if spec is None or spec.loader is None:
            return None
        execute = spec.loader.exec_module

        def execute_on_linux(module: ModuleType) -> None:
            execute(module)
            if before == "darwin":
                say("darwin", "Darwin", "arm64")
            if "torch.backends.mps" in sys.modules:
                sys.modules["torch.backends.mps"].is_built = lambda: True  # type: ignore[attr-defined]

        spec.loader.exec_module = execute_on_linux  # type: ignore[method-assign]
        return spec


proxies: Any = ModuleType("_scproxy")  # urllib asks macOS for its proxies
proxies._get_proxy_settings = proxies._get_proxies = dict
sys.modules["_scproxy"] = proxies
platform.mac_ver = lambda *_: ("15.5", ("", "", ""), "arm64")  # type: ignore[assignment]
sysconfig.get_config_vars()  # reads a module that only this build of Python has, and keeps it
sys.meta_path.insert(0, OnLinux())
say("darwin", "Darwin", "arm64")
