"""What plans depend on beside a call: torch's global switch for deterministic algorithms, off unless a test sets it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch


@pytest.fixture(autouse=True)
def _any_algorithm() -> Iterator[None]:
    """Let torch's host code take any algorithm, whatever ran before in this process."""
    before, warn_only = (
        torch.are_deterministic_algorithms_enabled(),
        torch.is_deterministic_algorithms_warn_only_enabled(),
    )
    torch.use_deterministic_algorithms(False)
    yield
    torch.use_deterministic_algorithms(before, warn_only=warn_only)
