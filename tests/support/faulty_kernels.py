"""Kernels of the simulated device with a fault that a test writes in Python."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch

# Gets the right kernel and the arguments of a call, and gives what the faulty one returns.
Faulty = Callable[..., Any]


@contextmanager
def faulty_kernel(overload: str, faulty: Faulty) -> Iterator[None]:
    """In this context the device's kernel of an overload ("exp", "sub.Tensor") is `faulty`."""
    name, _, rest = overload.partition(".")
    func = getattr(getattr(torch.ops.aten, name), rest or "default")
    kernel = torch.library.get_kernel(func, "MPS")

    def run(keyset: torch._C.DispatchKeySet, *args: Any, **kwargs: Any) -> Any:
        return faulty(lambda *a, **k: kernel.call_boxed(keyset, *a, **k), *args, **kwargs)

    library = torch.library.Library("aten", "IMPL")
    library.impl(func, run, "MPS", with_keyset=True, allow_override=True)
    try:
        yield
    finally:
        library._destroy()
