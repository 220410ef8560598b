"""Raises torch's error, or gives its warning, for kernels that are not deterministic."""

from __future__ import annotations

import warnings

import torch


def alert_not_deterministic(operator: str) -> None:
    """Raise RuntimeError, or warn, if `torch.use_deterministic_algorithms` is on; `operator` is not deterministic.

    `operator`: its name in torch's message, such as `put_`.
    """
    if not torch.are_deterministic_algorithms_enabled():
        return
    message = f"{operator} does not have a deterministic implementation"
    if torch.is_deterministic_algorithms_warn_only_enabled():
        warnings.warn(
            f"{message}, but you set 'torch.use_deterministic_algorithms(True, warn_only=True)'.", stacklevel=2
        )
        return
    raise RuntimeError(
        f"{message}, but you set 'torch.use_deterministic_algorithms(True)'. Turn off determinism for this operation "
        "alone, or use the 'warn_only=True' option, if that is acceptable for your application."
    )
