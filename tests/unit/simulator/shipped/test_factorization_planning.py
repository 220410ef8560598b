"""Cholesky and reflectors: which launches in which order."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from mpsmith.simulator.shipped.conventions.factorizations import PLANNERS
from mpsmith.simulator.shipped.plan import BlitFill, Declined, KernelLaunch
from support.fake_kernels import FakeKernels, planned

STAGES = ("factorDiagonalBlockU", "applyTRSMU", "applySYRKU")
COPY = "copy_identity_strided_float_float"
KERNELS = FakeKernels(dict.fromkeys((*STAGES, COPY, "triu_inplace_int_float", "orgqr_float"), ()))


def test_blocks_are_factored_one_after_another() -> None:
    x, factor = torch.zeros(2, 70, 70), torch.zeros(2, 70, 70).mT
    info = torch.zeros(2, dtype=torch.int32)
    _, fill, *steps = planned(PLANNERS, "linalg_cholesky_ex", KERNELS, factor, info, self=x, upper=True)
    assert isinstance(fill, BlitFill)
    assert fill.target is info
    launches = [step for step in steps if isinstance(step, KernelLaunch)]
    assert [(step.kernel, step.arguments.get("k"), step.threads) for step in launches[:-1]] == [
        ("factorDiagonalBlockU", 0, (64, 8, 1)),
        ("applyTRSMU", 0, (64, 16, 1)),
        ("applySYRKU", 0, (64, 24, 1)),
        ("factorDiagonalBlockU", 1, (64, 8, 1)),
        ("applyTRSMU", 1, (64, 8, 1)),
        ("applySYRKU", 1, (64, 8, 1)),
        ("factorDiagonalBlockU", 2, (64, 8, 1)),
    ]
    assert launches[0].arguments["A"] is factor
    assert launches[0].arguments["info"] is info
    assert launches[-1].kernel.startswith("triu")


def test_a_factor_with_rows_in_memory_is_a_copy() -> None:
    x, factor, info = torch.zeros(2, 5, 5), torch.zeros(2, 5, 5), torch.zeros(2, dtype=torch.int32)
    steps = planned(PLANNERS, "linalg_cholesky_ex.L", KERNELS, factor, info, self=x, upper=True)
    launches = [step for step in steps if isinstance(step, KernelLaunch)]
    factored = next(step.arguments["A"] for step in launches if step.kernel == "factorDiagonalBlockU")
    assert isinstance(factored, torch.Tensor)
    assert factored is not factor
    assert factored.mT.is_contiguous()
    assert launches[-1].arguments["output"] is factor


def test_reflectors_are_multiplied_in_place() -> None:
    x, tau, result = torch.zeros(3, 5, 4), torch.zeros(3, 2), torch.zeros(3, 5, 4)
    _, step = planned(PLANNERS, "linalg_householder_product", KERNELS, result, input=x, tau=tau)
    assert isinstance(step, KernelLaunch)
    assert step.arguments["A"] is result
    assert step.arguments["tau"] is tau
    params: Any = step.arguments["params"]
    assert {name: params[name] for name in ("m", "m2", "n", "k", "num_batch_dims")} == {
        "m": 5,
        "m2": 25,
        "n": 4,
        "k": 2,
        "num_batch_dims": 1,
    }
    assert params["H_sizes"] == (3, 5, 5)
    assert (step.threads, step.group) == ((75, 1, 1), (25, 1, 1))


def test_other_dtypes_are_declined() -> None:
    x = torch.zeros(2, 2, dtype=torch.complex64)
    with pytest.raises(Declined, match="no kernel for complex64"):
        planned(PLANNERS, "linalg_cholesky_ex", KERNELS, x, torch.zeros((), dtype=torch.int32), self=x)
