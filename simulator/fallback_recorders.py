"""Record which operators fell back to the CPU: on a Mac from warnings, on the simulated device from counters."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Protocol

import torch

from .device import loading

# The text of MPSFallback.mm; "implemented" was "supported" in some releases, and for complex dtypes.
FALLBACK_WARNING = re.compile(r"The operator '([\w:.]+)' is not currently (?:supported|implemented) on the MPS backend")


class FallbackRecorder(Protocol):
    """Attributes every fallback to its operator."""

    def recording(self) -> AbstractContextManager[list[str]]:
        """A context whose value is the list of fallen-back operators, filled when it ends."""


class WarningRecorder:
    """For a real device: PyTorch reports each fallback in a warning if it is set to warn always."""

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
        operators: list[str] = []
        loading.drain_fallbacks()
        try:
            yield operators
        finally:
            operators.extend(loading.drain_fallbacks())
