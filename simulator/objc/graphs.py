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
    """The number of graphs that ran in this process; loads the library if needed."""
    return int(loaded().mpsgraph_simulator_runs())


def check_caches() -> None:
    """Compare each graph that host code takes from its cache with the graph that the call would build itself.

    Raises in a call that gets the graph of a different call because the cache's key lacks an argument.
    """
    loaded().mpsgraph_simulator_check_caches(1)
