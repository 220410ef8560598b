"""How far results are said to be from a reference."""

from __future__ import annotations

import math
import sys

import pytest
import torch

from mpsmith.errors import MpsmithError
from mpsmith.kernels.verification.references.measured import largest, library, spacing


def test_units_are_those_of_float32_at_the_exact_result() -> None:
    exact = torch.tensor([1.0, 3.0, 0.0], dtype=torch.float64)
    assert spacing(exact).tolist() == [2.0**-23, 2.0**-22, 2.0**-149]
    assert spacing(exact, 4.0).tolist() == [2.0**-21] * 3
    found = torch.tensor([1.0 + 2.0**-22, 3.0, 0.0])
    assert largest(found, exact, spacing(exact)) == 2.0
    assert largest(found, exact, 1.0) == 2.0**-22


def test_what_is_infinite_on_one_side_alone_is_infinitely_far() -> None:
    infinite, exact = torch.tensor([math.inf, 1.0]), torch.tensor([1.0, 1.0], dtype=torch.float64)
    assert largest(infinite, exact, 1.0) == math.inf
    assert largest(torch.tensor([math.inf, 1.5]), torch.tensor([math.inf, 1.0], dtype=torch.float64), 1.0) == 0.5


def test_a_reference_that_is_not_installed_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "scipy.special", None)
    with pytest.raises(MpsmithError, match="scipy is not installed, which our kernels are compared with: pip install"):
        library("scipy.special")
