"""Whether an iteration converged; if it did not, the call goes to the CPU, so it never fails where the CPU does not."""

from __future__ import annotations

import warnings
from collections import Counter

import torch

# How many calls of this process went to the CPU, by operator.
_on_cpu: Counter[str] = Counter()


def calls_on_cpu() -> int:
    """How many calls of this process went to the CPU."""
    return _on_cpu.total()


def converged(infos: torch.Tensor, name: str, *, is_matrix: bool) -> bool:
    """Whether no matrix of a call has a positive info; the first call that has one gives a warning for `name`.

    `infos`: int32, LAPACK's info of each matrix; they are read back.
    Raises torch.linalg.LinAlgError for a negative info, as the CPU does.
    """
    on_host = infos.cpu()
    if not on_host.numel() or int(on_host.max()) <= 0:
        torch._linalg_check_errors(on_host, name, is_matrix=is_matrix)
        return True
    warn_of_the_cpu(name, "the iteration on the GPU did not converge")
    return False


def warn_of_the_cpu(name: str, reason: str) -> None:
    """Count a call that runs on the CPU, and warn of the first one of each operator."""
    _on_cpu[name] += 1
    if _on_cpu[name] == 1:
        warnings.warn(
            f"mpsmith: {name}: {reason}; this call runs on the CPU. Later ones do so without a warning.", stacklevel=2
        )
