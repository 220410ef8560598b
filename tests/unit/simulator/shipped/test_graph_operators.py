"""Operators that MPSGraph answers whole say so."""

from __future__ import annotations

import pytest
import torch

from mpsmith.simulator.shipped.conventions.graph_operators import PLANNERS
from mpsmith.simulator.shipped.plan import Declined
from support.fake_kernels import FakeKernels, planned


@pytest.mark.parametrize("overload", ["dot", "mse_loss", "_prelu_kernel"])
def test_they_are_the_graphs(overload: str) -> None:
    with pytest.raises(Declined, match="MPSGraph"):
        planned(PLANNERS, overload, FakeKernels({}), torch.zeros(()), self=torch.zeros(3))
