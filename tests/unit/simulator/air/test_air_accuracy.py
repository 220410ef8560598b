"""Mathematics moved within the bounds of Apple's specification."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
import torch

from mpsmith.simulator.air.intrinsics.accuracy import SINGLE_ULPS, is_moved
from mpsmith.simulator.air.library import AirLibrary
from support.air_kernels import air_library, elementwise
from support.needs import needs_metal_on_host

needs_metal_on_host()

BINARY = ("pow", "powr", "atan2")


def results(library: AirLibrary, seed: int | None, x: torch.Tensor, y: torch.Tensor | None = None) -> torch.Tensor:
    """What the kernel `k` of the library gives for `x`, moved by the seed where there is one."""
    moved = library if seed is None else library.moved(seed)
    out = torch.zeros_like(x)
    others = {} if y is None else {"b": y}
    moved.kernel("k").launch({"a": x, **others, "out": out}, [len(x)], [64])
    return out


def distance(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """How many numbers of the type lie between positive ones."""
    kind = torch.int32 if a.dtype is torch.float32 else torch.int16
    return (a.view(kind).long() - b.view(kind).long()).abs()


@pytest.mark.parametrize("name", sorted(SINGLE_ULPS))
def test_single_precision_stays_within_its_bound(tmp_path: Path, name: str) -> None:
    types = ("float",) * (2 if name in BINARY else 1)
    library = air_library(tmp_path, {"k": elementwise("k", f"air.{name}.f32", "float", *types)})
    x = torch.linspace(0.05, 0.45, 400) + (1 if name in ("acosh", "log", "log2", "log10") else 0)
    y = torch.linspace(0.3, 0.9, 400) if name in BINARY else None
    plain, moved = (results(library, seed, x, y) for seed in (None, 1))
    off = distance(plain, moved)
    assert 1 <= off.max() <= SINGLE_ULPS[name] - 1
    assert len(off.unique()) > 2
    assert torch.equal(moved, results(library, 1, x, y))
    assert not torch.equal(moved, results(library, 2, x, y))


def test_half_precision_is_one_of_the_two_numbers_around_the_result(tmp_path: Path) -> None:
    library = air_library(tmp_path, {"k": elementwise("k", "air.exp.f16", "half", "half")})
    x = torch.linspace(-3, 3, 400, dtype=torch.float16)
    moved = results(library, 1, x)
    true = x.double().exp()
    below = torch.where(moved.double() <= true, moved, torch.nextafter(moved, torch.tensor(0.0, dtype=torch.float16)))
    above = torch.nextafter(below, torch.tensor(math.inf, dtype=torch.float16))
    assert ((below.double() <= true) & (true <= above.double())).all()
    assert 0 < (moved != x.double().exp().half()).sum() < 300


def test_the_fast_exponential_may_lose_more_for_larger_arguments(tmp_path: Path) -> None:
    library = air_library(tmp_path, {"k": elementwise("k", "air.fast_exp.f32", "float", "float")})
    x = torch.linspace(30, 31, 400)
    off = distance(results(library, None, x), results(library, 1, x))
    assert 20 < off.max() <= 3 + 62


def test_the_fast_hyperbolic_tangent_is_a_formula_that_overflows(tmp_path: Path) -> None:
    library = air_library(tmp_path, {"k": elementwise("k", "air.fast_tanh.f32", "float", "float")})
    x = torch.tensor([0.5, 1e-4, 50.0])
    plain, moved = results(library, None, x), results(library, 1, x)
    assert distance(plain, x.double().tanh().float()).max() <= 1
    assert moved[0].item() == pytest.approx(plain[0].item(), rel=1e-6)
    assert abs(moved[1] / plain[1] - 1) > 1e-5  # 1 is subtracted from what is near 1
    assert moved[2].isnan()  # infinity over infinity


def test_a_kernel_is_moved_where_it_calls_an_inexact_function(tmp_path: Path) -> None:
    for name in ("air.exp.f32", "air.fast_exp2.f32", "air.sincos.v2f32", "air.pow.f16"):
        assert is_moved([name, "llvm.fmuladd.f32"])
    assert not is_moved(["air.sqrt.f32", "air.atomic.global.add.f32", "llvm.exp.f32", "air.wg.barrier"])
    kernels = {name: elementwise("k", f"air.{name}.f32", "float", "float") for name in ("exp", "sqrt")}
    for name, source in kernels.items():
        (tmp_path / name).mkdir()
        assert air_library(tmp_path / name, {"k": source}).uses_mathematics("k") is (name == "exp")


def test_exact_results_are_not_moved(tmp_path: Path) -> None:
    library = air_library(tmp_path, {"k": elementwise("k", "air.exp.f32", "float", "float")})
    x = torch.tensor([0.0, math.inf, -math.inf, 100.0, math.nan])
    assert results(library, 1, x)[:4].tolist() == [1, math.inf, 0, math.inf]
    assert results(library, 1, x)[4].isnan()


@pytest.mark.parametrize("name", ["sin", "tanh"])
def test_a_moved_result_stays_within_the_range_of_the_function(tmp_path: Path, name: str) -> None:
    library = air_library(tmp_path, {"k": elementwise("k", f"air.{name}.f32", "float", "float")})
    x = torch.linspace(1.569, 1.5725, 400) if name == "sin" else torch.linspace(8, 9, 400)
    moved = results(library, 1, x)
    assert moved.max() == 1
    assert (moved != results(library, None, x)).any()


def test_correctly_rounded_operations_are_not_moved(tmp_path: Path) -> None:
    library = air_library(tmp_path, {"k": elementwise("k", "air.sqrt.f32", "float", "float")})
    x = torch.rand(100)
    assert torch.equal(results(library, 1, x), x.double().sqrt().float())
