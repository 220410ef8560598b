"""Small programs in Objective-C++, compiled once into one library and run by name."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from mpsmith.simulator.objc import compiler
from mpsmith.simulator.objc.bridge import PROGRAMS
from mpsmith.simulator.objc.host_libraries import IMAGE, frameworks_library, linked

SOURCES = Path(__file__).with_name("programs")

Run = Callable[[str], str]


@pytest.fixture(scope="session")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Runs a program; answers what it says, or `threw: ` and the text of what it threw."""
    folder = tmp_path_factory.mktemp("programs")
    units = [compiler.Unit(path) for path in (*sorted(SOURCES.glob("*.[mc]*")), IMAGE)]
    objects = [folder / f"{unit.path.name}.o" for unit in units]
    host = compiler.host_compiler(torch=False)
    with ThreadPoolExecutor() as threads:
        list(threads.map(host.compile, units, objects))
    library = folder / "programs.so"
    assert compiler.link(objects, library, linked(frameworks_library())) == []
    frameworks = ctypes.CDLL(str(frameworks_library()), mode=ctypes.RTLD_GLOBAL)
    frameworks.metal_host_install(ctypes.byref(PROGRAMS))
    function = ctypes.CDLL(str(library)).run
    function.restype = ctypes.c_char_p
    return lambda name: function(name.encode()).decode()
