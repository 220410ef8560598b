"""Checks whether an iteration converged. If not, the call runs on the CPU, so it fails only if the CPU fails, too."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import torch

_warned: set[str] = set()  # the operators that have warned in this process
_reasons: ContextVar[list[str]] = ContextVar("_reasons")


@contextmanager
def reasons_for_the_cpu() -> Iterator[list[str]]:
    """Inside, the list gets the reason of each call of this thread that runs on the CPU instead."""
    token = _reasons.set([])
    try:
        yield _reasons.get()
    finally:
        _reasons.reset(token)


def converged(infos: torch.Tensor, name: str) -> bool:
    """Whether all infos of a call are zero. If not, warn, at the first such call of the operator `name`.

    `infos`: int32, one for each matrix, which are read back. A positive one means no convergence, a negative one that a
    matrix or its result is not finite, for which the CPU may raise.
    """
    on_host = infos.cpu()
    if not on_host.any():
        return True
    finite = int(on_host.min()) >= 0
    reason = "the iteration on the GPU did not converge" if finite else "a matrix or its result is not finite"
    warn_of_the_cpu(name, reason)
    return False


def warn_of_the_cpu(name: str, reason: str) -> None:
    """Say why a call runs on the CPU: warn of each operator's first one."""
    _reasons.get([]).append(f"{name}: {reason}")
    if name not in _warned:
        _warned.add(name)
        warnings.warn(
            f"mpsmith: {name}: {reason}; this call runs on the CPU. Later ones do so without a warning.", stacklevel=2
        )
