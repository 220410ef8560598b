"""What deterministic algorithms were asked for and a kernel does not give: an error, or a warning, as torch has it."""

from __future__ import annotations

import warnings

import torch


def alert_not_deterministic(operator: str) -> None:
    """Raise RuntimeError, or warn, where `torch.use_deterministic_algorithms` asks for what `operator` is not.

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
