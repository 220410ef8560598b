"""Chooses CPU kernels that compute the same bits on every x86-64 processor with AVX2.

They compute the references and, on the simulated device, most results. By default torch, oneDNN and MKL choose kernels
by the processor: an audit would give different verdicts on a different machine.
"""

from __future__ import annotations

import os
import platform
from collections.abc import Iterator
from contextlib import contextmanager


def choose_kernels_of_any_processor() -> None:
    """Fix the CPU kernels of this process. Must be called before torch has computed anything."""
    import torch

    if platform.machine() not in ("x86_64", "AMD64"):
        return
    # MKL's only branch that AMD's processors have too. With others, its complex transforms over leading dimensions of
    # odd sizes write beyond their memory (MKL 2024.2).
    os.environ.setdefault("MKL_CBWR", "COMPATIBLE")
    if torch.cpu._is_avx2_supported():
        os.environ.setdefault("ATEN_CPU_CAPABILITY", "avx2")
    torch._C._set_mkldnn_enabled(False)  # oneDNN generates code for each processor, and some lack its bfloat16


@contextmanager
def without_onednn() -> Iterator[None]:
    """Inside this context the CPU computes without oneDNN.

    With AVX-512 or AMX its product of float8 matrices does not saturate and reads a bias with gaps wrongly.
    """
    import torch

    was_enabled = torch._C._get_mkldnn_enabled()
    torch._C._set_mkldnn_enabled(False)
    try:
        yield
    finally:
        torch._C._set_mkldnn_enabled(was_enabled)
