"""Numbers of one type given to a kernel that reads another: refused where the caller's dtype says what they are."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from mpsmith.simulator import metal
from mpsmith.simulator.metal.binding import bind
from mpsmith.simulator.metal.element_types import element_mismatch
from support.needs import needs_metal_on_host

needs_metal_on_host()

SOURCE = """
#include <metal_stdlib>
using namespace metal;
struct Pair { float a; float b; };
#define READS(NAME, TYPE) \\
  kernel void NAME(device uint* out, TYPE in, uint i [[thread_position_in_grid]]) { out[i] = 1; (void)in; }
READS(floats, device const float*)
READS(vectors, constant float4*)
READS(packed, constant packed_float3*)
READS(halves, device const half*)
READS(bfloats, device const bfloat*)
READS(words, device const uint*)
READS(pairs, device const Pair*)
READS(anything, device const void*)
READS(a_float, constant float&)
READS(a_half, constant half&)
READS(an_int, constant int&)
READS(a_long, constant long&)
READS(a_flag, constant bool&)
READS(counter, device atomic_int*)
"""


@pytest.fixture(scope="module")
def library() -> metal.ShaderLibrary:
    return metal.compile(SOURCE)


def call(library: metal.ShaderLibrary, name: str, argument: Any, **options: Any) -> None:
    out = torch.zeros(1, dtype=torch.int32)
    getattr(library, name)(out, argument, threads=1, **options)
    assert out.item() == 1


@pytest.mark.parametrize(
    ("name", "dtype", "message"),
    [
        ("floats", torch.float16, "holds numbers of type half, and the kernel reads numbers of type float"),
        ("floats", torch.bfloat16, "holds numbers of type bfloat"),
        ("floats", torch.float64, "holds numbers of type double"),
        ("floats", torch.int64, "holds integers"),
        ("vectors", torch.float16, "type half"),
        ("packed", torch.bfloat16, "type bfloat"),
        ("halves", torch.float32, "the kernel reads numbers of type half"),
        ("halves", torch.bfloat16, "type bfloat"),
        ("bfloats", torch.float16, "the kernel reads numbers of type bfloat"),
    ],
)
def test_tensors_of_another_type_are_refused(
    library: metal.ShaderLibrary, name: str, dtype: torch.dtype, message: str
) -> None:
    with pytest.raises(RuntimeError, match=rf"argument 1 \('in'\).*{message}"):
        call(library, name, torch.ones(8, dtype=dtype))


@pytest.mark.parametrize(
    ("name", "dtype"),
    [
        ("floats", torch.float32),
        ("floats", torch.complex64),
        ("floats", torch.uint8),  # raw bytes
        ("vectors", torch.float32),
        ("packed", torch.float32),
        ("halves", torch.float16),
        ("bfloats", torch.bfloat16),
        ("words", torch.float32),  # bits
        ("words", torch.int64),
        ("words", torch.bool),
        ("pairs", torch.float16),
        ("anything", torch.float16),
        ("counter", torch.float32),
    ],
)
def test_compatible_element_types_are_accepted(library: metal.ShaderLibrary, name: str, dtype: torch.dtype) -> None:
    call(library, name, torch.ones(8, dtype=dtype))


def test_a_view_says_that_bits_are_meant(library: metal.ShaderLibrary) -> None:
    call(library, "floats", torch.ones(8, dtype=torch.float16).view(torch.float32))


@pytest.mark.parametrize(
    ("name", "value", "cast", "message"),
    [
        ("a_float", 3, None, "passes integers by value.*: pass a float"),
        ("a_float", [1, 2], None, "passes integers by value"),
        ("a_float", True, None, "passes integers by value"),
        ("a_half", 2.5, None, "pass arg_casts={...: 'fp16'}"),
        ("a_half", 2.5, "bf16", "passes numbers of type bfloat"),
        ("an_int", 2.5, None, "passes numbers of type float by value.*pass an integer"),
        ("floats", [1, 2, 3], None, "passes integers by value"),
    ],
)
def test_numbers_of_another_type_are_refused(
    library: metal.ShaderLibrary, name: str, value: Any, cast: str | None, message: str
) -> None:
    with pytest.raises(RuntimeError, match=message):
        call(library, name, value, arg_casts=cast)


def test_a_cpu_scalar_is_a_number_of_its_dtype() -> None:
    integer = bind(torch.tensor(1), 0, None, "mps", tight=False)
    assert (integer.numbers, integer.by_value) == ("int64", True)
    assert element_mismatch("int64", True, "float")
    narrowed = bind(torch.tensor(1.0, dtype=torch.float64), 0, None, "mps", tight=False)
    assert narrowed.numbers == "float"


@pytest.mark.parametrize(
    ("name", "value", "cast"),
    [
        ("a_float", 2.5, None),
        ("a_half", 2.5, "fp16"),
        ("a_half", 2, "fp16"),
        ("an_int", 3, "int32"),
        ("an_int", 3, None),
        ("a_long", 3, None),
        ("a_flag", True, None),
        ("floats", [1.5, 2], None),
        ("anything", [1, 2], None),
    ],
)
def test_numbers_that_fit(library: metal.ShaderLibrary, name: str, value: Any, cast: str | None) -> None:
    call(library, name, value, arg_casts=cast)


def test_arrays_have_dtypes_too(library: metal.ShaderLibrary) -> None:
    with pytest.raises(RuntimeError, match="type half"):
        call(library, "floats", np.ones(8, np.float16))
