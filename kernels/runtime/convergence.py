"""Checks whether an iteration converged. If not, the call runs on the CPU, so it fails only if the CPU fails, too."""

from __future__ import annotations

import warnings
from collections import Counter

import torch

# How many calls of this process went to the CPU, by operator.
_on_cpu: Counter[str] = Counter()


def calls_on_cpu() -> int:
    """How many calls of this process ran on the CPU."""
    return _on_cpu.total()


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
    """Count a call that runs on the CPU, and warn of each operator's first one."""
    _on_cpu[name] += 1
    if _on_cpu[name] == 1:
        warnings.warn(
            f"mpsmith: {name}: {reason}; this call runs on the CPU. Later ones do so without a warning.", stacklevel=2
        )
