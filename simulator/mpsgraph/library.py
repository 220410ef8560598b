"""Builds the stand-in for MPSGraph into a library, for the installed torch."""

from __future__ import annotations

import ctypes
import functools
from pathlib import Path

from ..device.build import SOURCE_FOLDER
from ..objc.compiler import Unit, host_compiler
from ..objc.host_libraries import IMAGE, built_library, frameworks_library
from . import limits

_HERE = Path(__file__).parent
INCLUDE = _HERE / "include"
"""Headers of MPSGraph with Apple's types; to be searched before the generated ones."""

LIBRARY = "libmpsmith_mpsgraph.so"
# A declared method without an implementation, or one with other types, is an error.
_OPTIONS = (
    "-Werror=incomplete-implementation",
    "-Werror=mismatched-parameter-types",
    "-Werror=mismatched-return-types",
)


@functools.cache
def graph_library() -> Path:
    """The library, built on first use. Raises ExtensionError if it cannot be built here."""
    units = [Unit(path, include=(INCLUDE, SOURCE_FOLDER), options=_OPTIONS) for path in sorted(_HERE.glob("*.mm"))]
    return built_library(
        LIBRARY,
        host_compiler(torch=True),
        [*units, Unit(IMAGE)],
        (frameworks_library(),),
        ("simulator.mpsgraph", "simulator.device.csrc"),
    )


@functools.cache
def loaded() -> ctypes.CDLL:
    """The library in this process, with the limits of MPSGraph installed."""
    library = ctypes.CDLL(str(graph_library()))
    library.mpsgraph_simulator_runs.restype = ctypes.c_int64
    limits.install(library)
    return library


def graphs_run() -> int:
    """The number of graphs that ran in this process; the library is loaded for it."""
    return int(loaded().mpsgraph_simulator_runs())


def check_caches() -> None:
    """From now on a graph out of a cache of host code is compared with the one that the call would make itself.

    A call that shares the graph of another one, because the key forgets an argument, then raises.
    """
    loaded().mpsgraph_simulator_check_caches(1)
