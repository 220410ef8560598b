"""Rows of an embedding that are scaled: every form of the kernel, every norm, few and many rows, short and long."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch

from mpsmith.kernels.embedding_renorm import embedding_renorm
from mpsmith.simulator import metal

NORMS = (2.0, 1.0, 0.0, 3.0, -1.0, math.inf, -math.inf)
DTYPES = (torch.float32, torch.float16, torch.bfloat16, torch.complex64)
LIMIT = 1.5

REGISTERED = ("aten::embedding_renorm_",)


@pytest.fixture
def launched(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The kernels that are asked for."""
    names: list[str] = []

    def recorded(name: str, device: torch.device, kernel: Callable[..., Any] = embedding_renorm._shader.kernel) -> Any:
        names.append(name)
        return kernel(name, device)

    monkeypatch.setattr(embedding_renorm._shader, "kernel", recorded)
    return names


def numbers(rows: int, columns: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    """Half of the rows are beyond the limit in most norms, and no number is zero."""
    generator = torch.Generator().manual_seed(rows * columns)
    wide = torch.complex128 if dtype.is_complex else torch.float64
    table = torch.randn(rows, columns, generator=generator, dtype=wide)
    table = torch.where(table.abs() < 0.01, 0.5, table)
    return (table * torch.rand(rows, 1, generator=generator).add(0.01).log2().exp()).to(dtype)


def scaled(table: torch.Tensor, indices: torch.Tensor, limit: float, norm: float) -> torch.Tensor:
    """What is to come out, computed in float64."""
    wide = table.to(torch.complex128 if table.is_complex() else torch.float64)
    norms = torch.linalg.vector_norm(wide, norm, 1, keepdim=True)
    named = torch.zeros(len(table), 1, dtype=torch.bool)
    named[indices.flatten()] = True
    return torch.where(named & (norms > limit), wide * (limit / (norms + 1e-7)), wide).to(table.dtype)


def check(table: torch.Tensor, indices: torch.Tensor, norm: float, limit: float = LIMIT) -> None:
    """`table`, of any strides, after the call on the device."""
    on_device = torch.empty(table.untyped_storage().nbytes() // table.element_size(), dtype=table.dtype)
    on_device = on_device.fill_(7).to("mps").as_strided(table.shape, table.stride(), table.storage_offset())
    on_device.copy_(table)
    torch.embedding_renorm_(on_device, indices.to("mps"), limit, norm)
    torch.testing.assert_close(on_device.cpu(), scaled(table, indices, limit, norm))


def repeated(rows: int) -> torch.Tensor:
    """Three of four rows, in no order, some of them several times."""
    named = torch.randint(0, rows, (rows,), generator=torch.Generator().manual_seed(rows))
    return torch.cat([named[named % 4 != 1], named[:3], named[:3]])


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_every_norm_with_and_without_vectors(dtype: torch.dtype, norm: float, launched: list[str]) -> None:
    limit = 30.0 if norm == 0 else LIMIT
    with metal.checking("checked"):
        for columns in (40, 41, 320):
            check(numbers(7, columns, dtype), repeated(7), norm, limit)
        check(numbers(80, 7, dtype).T, repeated(7), norm, limit)
    forms = [name.removeprefix("embedding_renorm_").rpartition("_")[0] for name in launched]
    assert forms == (["vectors", "", "vectors", ""] if norm == 2 else [""] * 4)


@pytest.mark.parametrize("norm", [2.0, 1.0, -math.inf])
@pytest.mark.parametrize("columns", [1024, 1028, 8192, 8196, 20_000, 20_001])
def test_rows_longer_than_registers(columns: int, norm: float) -> None:
    """Eight times 256 threads hold 8,192 floats in vectors, and 2,048 one by one."""
    check(numbers(3, columns), torch.tensor([2, 0, 2]), norm, limit=0.01)


@pytest.mark.parametrize("columns", [12, 13, 1024, 1030, 4100])
@pytest.mark.parametrize("norm", [2.0, math.inf])
def test_a_simd_group_for_each_of_many_rows(columns: int, norm: float) -> None:
    check(numbers(1100, columns), torch.randperm(1100), norm)


@pytest.mark.parametrize("norm", [2.0, 1.0])
def test_large_strides_use_64_bit_offsets(norm: float, launched: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embedding_renorm, "LARGEST_32_BIT", 500)
    check(numbers(6, 400), repeated(6), norm)
    check(numbers(6, 600), repeated(6), norm)
    check(numbers(300, 6).T, repeated(6), norm)
    first = "vectors_" if norm == 2 else ""
    assert launched == [f"embedding_renorm_{form}float" for form in (first, "64_", "64_")]


def test_unaligned_rows_use_no_vectors(launched: list[str]) -> None:
    memory = numbers(40, 40).flatten()
    for offset, stride, columns in ((0, 44, 40), (1, 44, 40), (0, 42, 40), (0, 44, 38), (4, 40, 36)):
        check(memory.as_strided((9, columns), (stride, 1), offset), repeated(9), 2.0)
    assert [name == "embedding_renorm_vectors_float" for name in launched] == [True, False, False, False, True]


def test_repeated_index_scales_once() -> None:
    """The number of nonzeros stays what it is, so that a second time would show."""
    with metal.checking("schedules"):
        check(numbers(5, 40), torch.tensor([[3, 3, 3, 0], [3, 0, 4, 3]]), 0.0, limit=10.0)


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.complex64])
@pytest.mark.parametrize("columns", [64, 65])
def test_nan_keeps_its_row(columns: int, dtype: torch.dtype, norm: float) -> None:
    table = numbers(4, columns, dtype)
    table[1, 3], table[2, 60] = math.nan, math.inf
    if dtype.is_complex:
        table[0, 1:3] = torch.tensor([complex(1, -math.inf), complex(math.nan, math.inf)])
    expected = torch.embedding_renorm_(table.clone(), torch.arange(4), LIMIT, norm)
    actual = torch.embedding_renorm_(table.to("mps"), torch.arange(4, device="mps"), LIMIT, norm)
    torch.testing.assert_close(actual.cpu(), expected, equal_nan=True)


@pytest.mark.parametrize("power", [1.0, 2.0, math.inf])
def test_magnitudes_of_complex_numbers_whose_squares_overflow(power: float) -> None:
    rows = torch.tensor([[complex(3e38, 1e38)], [complex(0, -3e38)], [complex(math.inf, math.nan)], [0j]])
    actual = torch.embedding_renorm_(rows.to("mps"), torch.arange(4).to("mps"), 4.0, power).cpu()
    unit = rows[:2] / 3e38
    assert torch.allclose(actual[:2], 4 * unit / unit.abs())
    assert actual[2].imag.isnan().all()
    assert actual[3] == 0
