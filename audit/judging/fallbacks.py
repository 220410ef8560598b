"""Error texts of PyTorch that name an operator without a kernel for a device."""

from __future__ import annotations

import re

# The texts of MPSFallback.mm; "implemented" was "supported" in some releases, and for complex dtypes.
NOT_IMPLEMENTED = re.compile(r"The operator '([\w:.]+)' is not currently (?:supported|implemented) (?:for|on) the MPS")
NO_CPU_KERNEL = re.compile(r"Could not run '([\w:.]+)' (?:with arguments )?from the 'CPU' backend")
NO_KERNEL = re.compile(r"Could not run '([\w:.]+)' (?:with arguments )?from the '(\w*MPS)' backend")


def missing_operator(error: BaseException) -> str | None:
    """The operator that an error says has no kernel for mps ("aten::mode"), or None for any other error."""
    if not isinstance(error, NotImplementedError):
        return None
    text = str(error)
    match = NOT_IMPLEMENTED.search(text) or NO_KERNEL.search(text)
    return match[1] if match else None
