"""Whether an iteration converged; if it did not, the call goes to the CPU, so it never fails where the CPU does not."""

from __future__ import annotations

import warnings

import torch

_warned: set[str] = set()


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
    """Warn, once in a process for each operator, that a call runs on the CPU."""
    if name not in _warned:
        _warned.add(name)
        warnings.warn(
            f"mpsmith: {name}: {reason}; this call runs on the CPU. Further ones do without a word.", stacklevel=2
        )
