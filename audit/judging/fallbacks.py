"""Which operators ran on the CPU inside a call that was meant for mps."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

import torch

# The text of MPSFallback.mm; "implemented" was "supported" in some releases, and for complex dtypes.
FALLBACK_WARNING = re.compile(r"The operator '([\w:.]+)' is not currently (?:supported|implemented) on the MPS backend")
NOT_IMPLEMENTED = re.compile(r"The operator '([\w:.]+)' is not currently (?:supported|implemented) (?:for|on) the MPS")
NO_CPU_KERNEL = re.compile(r"Could not run '([\w:.]+)' (?:with arguments )?from the 'CPU' backend")
NO_KERNEL = re.compile(r"Could not run '([\w:.]+)' (?:with arguments )?from the '(\w*MPS)' backend")


class FallbackRecorder(Protocol):
    """Attributes every fallback to its operator."""

    def recording(self) -> Iterator[list[str]] | object:
        """A context whose value is the list of fallen-back operators, filled when it ends."""


class WarningRecorder:
    """For a real device: PyTorch warns of each fallback once it is told to warn always."""

    def __init__(self) -> None:
        torch.set_warn_always(True)

    @contextmanager
    def recording(self) -> Iterator[list[str]]:
        """Collect the operators named in the fallback warnings of the enclosed calls."""
        operators: list[str] = []
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                yield operators
            finally:
                names = (FALLBACK_WARNING.search(str(w.message)) for w in caught)
                operators.extend(dict.fromkeys(match[1] for match in names if match))


class CounterRecorder:
    """For the simulated device: its exact per-operator counters."""

    @contextmanager
    def recording(self) -> Iterator[list[str]]:
        """Collect the operators that the device's counters saw fall back in the enclosed calls."""
        from ...simulator.device import loading as simulated_device

        operators: list[str] = []
        simulated_device.drain_fallbacks()
        try:
            yield operators
        finally:
            operators.extend(simulated_device.drain_fallbacks())


def missing_operator(error: BaseException) -> str | None:
    """The operator that an error says has no kernel for mps ("aten::mode"), or None for any other error."""
    if not isinstance(error, NotImplementedError):
        return None
    text = str(error)
    match = NOT_IMPLEMENTED.search(text) or NO_KERNEL.search(text)
    return match[1] if match else None
