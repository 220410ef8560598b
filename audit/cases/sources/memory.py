"""Whether this machine, and this worker, have the memory that a large case needs."""

from __future__ import annotations

import gc
import os
import resource
from pathlib import Path

GIB = 1 << 30


def lacking_memory(need_gib: float) -> str:
    """Why a case that needs so much memory is not executed here, or "" if it is."""
    limit, _ = resource.getrlimit(resource.RLIMIT_DATA)
    if limit != resource.RLIM_INFINITY and limit < need_gib * GIB:
        return f"needs {need_gib:.0f} GiB, a worker may hold {limit / GIB:.0f} (--memory-limit {need_gib + 1:.0f})"
    if available_bytes() < need_gib * GIB:
        gc.collect()  # what the case before left behind may be as large
    free = available_bytes()
    if free < need_gib * GIB:
        return f"needs {need_gib:.0f} GiB of memory, this machine has {free / GIB:.0f} to spare"
    return ""


def available_bytes() -> int:
    """The memory in bytes that a process may take now; the installed memory if the system does not say."""
    try:
        text = Path("/proc/meminfo").read_text()
    except OSError:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    fields = dict(line.split(":", 1) for line in text.splitlines())
    return int(fields["MemAvailable"].split()[0]) * 1024
