"""The stand-in for MPSGraph in this process, for the installed torch."""

from __future__ import annotations

import ctypes
import functools

from ..mpsgraph import limits
from .host_libraries import graph_library


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
