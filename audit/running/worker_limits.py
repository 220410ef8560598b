"""Limits of worker processes: how many, how much memory, and that they end with their parent."""

from __future__ import annotations

import ctypes
import os
import platform
import resource
import time
from pathlib import Path

# An estimate, until a Mac has measured it: torch, the samples and MPSGraph's caches of one worker on a real device.
MAC_BYTES_PER_WORKER = 4 << 30
# A worker that holds more after its groups gives back what is free, and ends where that is too little: the code of
# shipped kernels stays loaded. Another worker goes on, and its start costs ten seconds of processor time.
MOST_RESIDENT = 900 << 20
# All workers share one GPU; more of them only overlap what runs on the CPU.
MOST_ON_A_MAC = 4


def default_workers() -> int:
    """One worker per core; on a Mac, whose GPU shares the memory, as many as half of the memory has room for."""
    cores = os.cpu_count() or 1
    if platform.system() != "Darwin":
        return cores
    return max(1, min(cores, MOST_ON_A_MAC, memory_of_machine() // 2 // MAC_BYTES_PER_WORKER))


def memory_of_machine() -> int:
    """The machine's memory in bytes."""
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def resident_bytes() -> int:
    """The memory that this process holds now; 0 if the system does not report it (macOS)."""
    try:
        pages = Path("/proc/self/statm").read_text().split()[1]
    except OSError:
        return 0
    return int(pages) * os.sysconf("SC_PAGE_SIZE")


def exceeds_memory_limit() -> bool:
    """Whether this process holds more memory than a worker may, after glibc has returned its free pages."""
    if resident_bytes() > MOST_RESIDENT and (trim := getattr(ctypes.CDLL(None), "malloc_trim", None)) is not None:
        trim(0)
    return resident_bytes() > MOST_RESIDENT


def device_memory_of_a_worker(workers: int) -> int:
    """Bytes of a real device's memory that each worker may keep: half of the memory, divided by their number."""
    return memory_of_machine() // 2 // workers


def end_with_parent(parent: int) -> None:
    """Run in a thread: end this process when its parent has ended, because it would wait for tasks forever."""
    while os.getppid() == parent:
        time.sleep(0.5)
    os._exit(3)


def limit_memory(limit: int) -> None:
    """Let allocations beyond the limit fail instead of filling the memory (Linux; macOS does not enforce this)."""
    if limit:
        _, hard = resource.getrlimit(resource.RLIMIT_DATA)
        resource.setrlimit(resource.RLIMIT_DATA, (limit, hard))
