"""The host's definitions of Apple's operations, each in a separate kernel."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
import torch

from support.air_kernels import air_library, buffer, builtin, elementwise, kernel
from support.needs import needs_metal_on_host

needs_metal_on_host()

DTYPES = {
    "float": torch.float32,
    "half": torch.float16,
    "bfloat": torch.bfloat16,
    "i8": torch.int8,
    "i16": torch.int16,
    "i32": torch.int32,
    "i64": torch.int64,
}
INF, NAN = math.inf, math.nan


def applied(folder: Path, operation: str, returns: str, types: tuple[str, ...], *values: list[float]) -> list[float]:
    """The results of an operation for each element of its arguments."""
    library = air_library(folder, {"k": elementwise("k", operation, returns, *types)})
    tensors = {n: torch.tensor(v, dtype=DTYPES[t]) for n, t, v in zip("abcd", types, values, strict=False)}
    out = torch.zeros(len(values[0]), dtype=DTYPES[returns])
    library.kernel("k").launch({**tensors, "out": out}, [len(values[0])], [32])
    return out.tolist()


INTEGERS = [
    ("air.min.s.i32", ("i32", "i32"), [[1, -2], [-3, 5]], [-3, -2]),
    ("air.min.u.i32", ("i32", "i32"), [[1, -2], [-3, 5]], [1, 5]),
    ("air.max.s.i8", ("i8", "i8"), [[1, -2], [-3, 5]], [1, 5]),
    ("air.max.u.i8", ("i8", "i8"), [[1, -2], [-3, 5]], [-3, -2]),
    ("air.abs.s.i16", ("i16",), [[-7, 7, -32768]], [7, 7, -32768]),
    ("air.abs.u.i8", ("i8",), [[-7, 7]], [-7, 7]),
    ("air.clamp.s.i64", ("i64",) * 3, [[-9, 4, 9], [0, 0, 0], [5, 5, 5]], [0, 4, 5]),
    ("air.clz.i32", ("i32",), [[0, 1, -1]], [32, 31, 0]),
    ("air.ctz.i16", ("i16",), [[0, 4, -1]], [16, 2, 0]),
    ("air.popcount.i32", ("i32",), [[0, 7, -1]], [0, 3, 32]),
    ("air.reverse_bits.i8", ("i8",), [[1, -128]], [-128, 1]),
    ("air.mul_hi.s.i32", ("i32", "i32"), [[2**30, -1], [8, 2]], [2, -1]),
    ("air.mul_hi.u.i32", ("i32", "i32"), [[2**30, -1], [8, 2]], [2, 1]),
    ("air.mad_hi.s.i32", ("i32",) * 3, [[2**30], [8], [5]], [7]),
    ("air.add_sat.s.i8", ("i8", "i8"), [[100, -100], [100, -100]], [127, -128]),
    ("air.sub_sat.u.i8", ("i8", "i8"), [[1, 3], [2, 2]], [0, 1]),
    ("air.absdiff.s.i32", ("i32", "i32"), [[-2, 7], [3, 3]], [5, 4]),
    ("air.rotate.i8", ("i8", "i8"), [[1, -128], [3, 1]], [8, 1]),
]


@pytest.mark.parametrize(("operation", "types", "values", "expected"), INTEGERS, ids=[row[0] for row in INTEGERS])
def test_integers(
    tmp_path: Path, operation: str, types: tuple[str, ...], values: list[list[float]], expected: list[int]
) -> None:
    assert applied(tmp_path, operation, types[0], types, *values) == expected


FLOATS = [
    ("air.floor.f32", "float", [[-1.5, 1.5]], [-2, 1]),
    ("air.ceil.f16", "half", [[-1.5, 1.5]], [-1, 2]),
    ("air.trunc.f32", "float", [[-1.5, 1.5]], [-1, 1]),
    ("air.rint.f32", "float", [[0.5, 1.5, 2.5]], [0, 2, 2]),
    ("air.round.f32", "float", [[0.5, 1.5, -2.5]], [1, 2, -3]),
    ("air.fabs.bf16", "bfloat", [[-3, 3]], [3, 3]),
    ("air.fmax.f32", "float", [[NAN, 1], [2, NAN]], [2, 1]),
    ("air.fmin.f16", "half", [[NAN, 1], [2, 0]], [2, 0]),
    ("air.copysign.f32", "float", [[3, -3], [-1, 1]], [-3, 3]),
    ("air.clamp.f32", "float", [[-9, 4, 9], [0, 0, 0], [5, 5, 5]], [0, 4, 5]),
    ("air.saturate.f32", "float", [[-9, 0.5, 9]], [0, 0.5, 1]),
    ("air.sign.f32", "float", [[-9, 0, 9, NAN]], [-1, 0, 1, 0]),
    ("air.sqrt.f32", "float", [[4, INF]], [2, INF]),
    ("air.rsqrt.f32", "float", [[4, INF]], [0.5, 0]),
    ("air.fma.f32", "float", [[2, 3], [4, 5], [1, 1]], [9, 16]),
    ("air.pow.f32", "float", [[2, -2], [10, 3]], [1024, -8]),
    ("air.fmod.f32", "float", [[7, -7], [4, 4]], [3, -3]),
    ("air.exp.f16", "half", [[0, 11.5]], [1, INF]),
    ("air.exp2.f32", "float", [[10, -1]], [1024, 0.5]),
    ("air.exp10.f32", "float", [[2, -1]], [100, 0.10000000149011612]),
    ("air.log2.f32", "float", [[8, 0]], [3, -INF]),
    ("air.fast_log2.f32", "float", [[8]], [3]),
    ("air.atan2.f16", "half", [[0, 1], [1, 0]], [0, 1.5703125]),
    ("air.sinpi.f32", "float", [[0.5, 1.5, 1, -13, 2.0**24 + 2, 0.25]], [1, -1, 0, 0, 0, 0.7071067690849304]),
    ("air.cospi.f32", "float", [[0, 1, 0.5, 2.5, -0.25]], [1, -1, 0, 0, 0.7071067690849304]),
    ("air.tanpi.f32", "float", [[0, 0.5, 1.5, 0.25]], [0, INF, -INF, 1]),
    ("air.fract.f32", "float", [[1.25, -0.25, -1e-30, INF]], [0.25, 0.75, 1 - 2.0**-24, 0]),
    ("air.fract.f16", "half", [[1.25, -6e-8]], [0.25, 1 - 2.0**-11]),
    ("air.nextafter.f32", "float", [[1, 0, 1], [2, -1, 1]], [1 + 2.0**-23, -(2.0**-149), 1]),
    ("air.nextafter.f16", "half", [[1, 0, -1], [2, 1, -2]], [1 + 2.0**-10, 2.0**-24, -1 - 2.0**-10]),
    ("air.nextafter.bf16", "bfloat", [[1, 1], [2, 0]], [1 + 2.0**-7, 1 - 2.0**-8]),
]


@pytest.mark.parametrize(("operation", "kind", "values", "expected"), FLOATS, ids=[row[0] for row in FLOATS])
def test_floats(tmp_path: Path, operation: str, kind: str, values: list[list[float]], expected: list[float]) -> None:
    assert applied(tmp_path, operation, kind, (kind,) * len(values), *values) == expected


CONVERSIONS = [
    ("air.convert.s.i32.f.f32", "i32", "float", [1.9, -1.9, 1e20, -1e20, NAN], [1, -1, 2**31 - 1, -(2**31), 0]),
    ("air.convert.u.i8.f.f16", "i8", "half", [1.9, -1.9, 300], [1, 0, -1]),
    ("air.convert.s.i16.f.bf16", "i16", "bfloat", [3.5, 1e9], [3, 32767]),
    ("air.convert.f.f32.u.i8", "float", "i8", [-1, 1], [255, 1]),
    ("air.convert.f.f32.s.i8", "float", "i8", [-1, 1], [-1, 1]),
    ("air.convert.f.f16.f.bf16", "half", "bfloat", [1.5, 1e9], [1.5, INF]),
    ("air.convert.f.bf16.f.f32", "bfloat", "float", [1.00390625, 1.01171875], [1, 1.015625]),
    ("air.convert.s.i64.s.i32", "i64", "i32", [-5], [-5]),
    ("air.convert.s.i64.u.i32", "i64", "i32", [-5], [2**32 - 5]),
    ("air.convert.u.i8.u.i32", "i8", "i32", [257], [1]),
]


@pytest.mark.parametrize(
    ("operation", "returns", "kind", "values", "expected"), CONVERSIONS, ids=[row[0] for row in CONVERSIONS]
)
def test_conversions(
    tmp_path: Path, operation: str, returns: str, kind: str, values: list[float], expected: list[float]
) -> None:
    assert applied(tmp_path, operation, returns, (kind,), values) == expected


LANES = [
    ("air.simd_sum.u.i32", "i32", "", list(range(32)), [496] * 32),
    ("air.simd_max.s.i32", "i32", "", [-5] * 31 + [3], [3] * 32),
    ("air.simd_min.u.i32", "i32", "", [-5] * 31 + [3], [3] * 32),
    ("air.simd_prefix_inclusive_sum.s.i32", "i32", "", [1] * 32, list(range(1, 33))),
    ("air.simd_prefix_exclusive_sum.u.i32", "i32", "", [1] * 32, list(range(32))),
    ("air.simd_shuffle.s.i32", "i32", ", i16 5", list(range(32)), [5] * 32),
    ("air.simd_shuffle_xor.s.i32", "i32", ", i16 1", list(range(32)), [i ^ 1 for i in range(32)]),
    ("air.simd_shuffle_down.s.i32", "i32", ", i16 2", list(range(32)), [*range(2, 32), 30, 31]),
    ("air.simd_shuffle_up.s.i32", "i32", ", i16 2", list(range(32)), [0, 1, *range(30)]),
    ("air.simd_shuffle_rotate_up.s.i32", "i32", ", i16 1", list(range(32)), [31, *range(31)]),
    (
        "air.simd_shuffle_and_fill_up.s.i32",
        "i32",
        ", i32 -1, i16 1, i16 8",
        list(range(32)),
        [-1 if i % 8 == 0 else i - 1 for i in range(32)],
    ),
    (
        "air.simd_shuffle_and_fill_down.s.i32",
        "i32",
        ", i32 -1, i16 2, i16 32",
        list(range(32)),
        [*range(2, 32), -1, -1],
    ),
    ("air.simd_broadcast_first.u.i32", "i32", "", list(range(7, 39)), [7] * 32),
]


@pytest.mark.parametrize(("operation", "kind", "more", "values", "expected"), LANES, ids=[row[0] for row in LANES])
def test_lanes(tmp_path: Path, operation: str, kind: str, more: str, values: list[int], expected: list[int]) -> None:
    types = ", ".join([kind, *(word.split()[0] for word in more.split(", ")[1:])])
    body = f"""
  %i = zext i32 %t to i64
  %p = getelementptr {kind}, ptr addrspace(1) %x, i64 %i
  %v = load {kind}, ptr addrspace(1) %p
  %r = call {kind} @{operation}({kind} %v{more})
  store {kind} %r, ptr addrspace(1) %p
"""
    arguments = [buffer("x", "int", 0), builtin("thread_position_in_grid")]
    declaration = f"declare {kind} @{operation}({types})"
    text = kernel("k", "ptr addrspace(1) %x, i32 %t", arguments, body, declarations=declaration)
    x = torch.tensor(values, dtype=torch.int32)
    air_library(tmp_path, {"k": text}).kernel("k").launch({"x": x}, [32], [32])
    assert x.tolist() == expected


def test_a_filling_lane_that_is_not_there_leaves_the_own_filling(tmp_path: Path) -> None:
    body = """
  %i = zext i32 %t to i64
  %p = getelementptr i32, ptr addrspace(1) %x, i64 %i
  %v = load i32, ptr addrspace(1) %p
  %r = call i32 @air.simd_shuffle_and_fill_up.s.i32(i32 %v, i32 0, i16 2, i16 32)
  store i32 %r, ptr addrspace(1) %p
"""
    arguments = [buffer("x", "int", 0), builtin("thread_position_in_grid")]
    declaration = "declare i32 @air.simd_shuffle_and_fill_up.s.i32(i32, i32, i16, i16)"
    text = kernel("k", "ptr addrspace(1) %x, i32 %t", arguments, body, declarations=declaration)
    x = torch.tensor([5, 6, 7, 8], dtype=torch.int32)
    air_library(tmp_path, {"k": text}).kernel("k").launch({"x": x}, [4], [4])
    assert x.tolist() == [0, 0, 5, 6]


def test_a_vote_counts_the_lanes_that_take_part(tmp_path: Path) -> None:
    body = """
  %even = and i32 %t, 1
  %is = icmp eq i32 %even, 0
  %votes = call i64 @air.simd_ballot.i64(i1 %is)
  %any = call i1 @air.simd_any(i1 %is)
  %all = call i1 @air.simd_all(i1 %is)
  %first = call i1 @air.simd_is_first()
  %a = zext i1 %any to i64
  %b = zext i1 %all to i64
  %c = zext i1 %first to i64
  %i = zext i32 %t to i64
  %row = mul i64 %i, 4
  %p = getelementptr i64, ptr addrspace(1) %out, i64 %row
  store i64 %votes, ptr addrspace(1) %p
  %q = getelementptr i64, ptr addrspace(1) %p, i64 1
  store i64 %a, ptr addrspace(1) %q
  %r = getelementptr i64, ptr addrspace(1) %p, i64 2
  store i64 %b, ptr addrspace(1) %r
  %s = getelementptr i64, ptr addrspace(1) %p, i64 3
  store i64 %c, ptr addrspace(1) %s
"""
    declarations = "\n".join(
        [
            "declare i64 @air.simd_ballot.i64(i1)",
            "declare i1 @air.simd_any(i1)",
            "declare i1 @air.simd_all(i1)",
            "declare i1 @air.simd_is_first()",
        ]
    )
    arguments = [buffer("out", "long", 0), builtin("thread_position_in_grid")]
    text = kernel("k", "ptr addrspace(1) %out, i32 %t", arguments, body, declarations=declarations)
    out = torch.zeros(5, 4, dtype=torch.int64)
    air_library(tmp_path, {"k": text}).kernel("k").launch({"out": out}, [5], [32])
    assert out.tolist() == [[0b10101, 1, 0, 1], *[[0b10101, 1, 0, 0]] * 4]


ATOMICS = [
    ("add.u.i32", "i32", 0, 100),
    ("max.u.i64", "i64", 5, 5),
    ("min.u.i64", "i64", 5, 1),
    ("or.u.i32", "i32", 4, 5),
    ("sub.s.i32", "i32", 0, -100),
    ("xchg.i32", "i32", 9, 1),
    ("add.f32", "float", 0, 100),
]


@pytest.mark.parametrize(("operation", "kind", "start", "end"), ATOMICS, ids=[row[0] for row in ATOMICS])
def test_atomic_operations(tmp_path: Path, operation: str, kind: str, start: int, end: int) -> None:
    name = f"air.atomic.global.{operation}"
    operand = "1.0" if kind == "float" else "1"
    call = f"  %o = call {kind} @{name}(ptr addrspace(1) %x, {kind} {operand}, i32 0, i32 2, i1 true)"
    declaration = f"declare {kind} @{name}(ptr addrspace(1), {kind}, i32, i32, i1)"
    arguments = [buffer("x", {"i64": "long", "i32": "int"}.get(kind, kind), 0), builtin("thread_position_in_grid")]
    text = kernel("k", "ptr addrspace(1) %x, i32 %t", arguments, call, declarations=declaration)
    x = torch.tensor([start], dtype=DTYPES[kind])
    air_library(tmp_path, {"k": text}).kernel("k").launch({"x": x}, [100], [32])
    assert x.tolist() == [end]


def test_compare_and_exchange_returns_the_old_value(tmp_path: Path) -> None:
    body = """
  %e = alloca float
  store float 3.0, ptr %e
  %o = call float @air.atomic.global.cmpxchg.weak.f32(ptr addrspace(1) %x, ptr %e, float 8.0, i32 0, i32 0, i32 2, i1 1)
  %f = load float, ptr %e
  %i = zext i32 %t to i64
  %next = add i64 %i, 1
  %p = getelementptr float, ptr addrspace(1) %x, i64 %next
  %sum = fadd float %o, %f
  store float %sum, ptr addrspace(1) %p
"""
    declaration = "declare float @air.atomic.global.cmpxchg.weak.f32(ptr addrspace(1), ptr, float, i32, i32, i32, i1)"
    arguments = [buffer("x", "float", 0), builtin("thread_position_in_grid")]
    text = kernel("k", "ptr addrspace(1) %x, i32 %t", arguments, body, declarations=declaration)
    x = torch.tensor([3.0, 0, 0])
    air_library(tmp_path, {"k": text}).kernel("k").launch({"x": x}, [2], [2])
    assert x.tolist() == [8, 6, 16]


def test_matrices_multiply(tmp_path: Path) -> None:
    load = "call <64 x float> @air.simdgroup_matrix_8x8_load.v64f32.p1f32(ptr addrspace(1)"
    tail = "i64 8, <2 x i64> zeroinitializer, i1"
    body = f"""
  %ma = {load} %a, {tail} false)
  %mb = {load} %b, {tail} true)
  %mc = call <64 x float> @air.simdgroup_matrix_8x8_init_diag.v64f32.f32(float 10.0)
  %md = call <64 x float> @MULTIPLY(<64 x float> %ma, <64 x float> %mb, <64 x float> %mc)
  call void @air.simdgroup_matrix_8x8_store.v64f32.p1f32(<64 x float> %md, ptr addrspace(1) %out, {tail} false)
"""
    multiply = "air.simdgroup_matrix_8x8_multiply_accumulate.v64f32.v64f32.v64f32.v64f32"
    declarations = f"""
declare <64 x float> @air.simdgroup_matrix_8x8_load.v64f32.p1f32(ptr addrspace(1), i64, <2 x i64>, i1)
declare void @air.simdgroup_matrix_8x8_store.v64f32.p1f32(<64 x float>, ptr addrspace(1), i64, <2 x i64>, i1)
declare <64 x float> @air.simdgroup_matrix_8x8_init_diag.v64f32.f32(float)
declare <64 x float> @{multiply}(<64 x float>, <64 x float>, <64 x float>)
"""
    arguments = [buffer(name, "float", i) for i, name in enumerate(("a", "b", "out"))]
    text = kernel(
        "k",
        "ptr addrspace(1) %a, ptr addrspace(1) %b, ptr addrspace(1) %out",
        arguments,
        body.replace("MULTIPLY", multiply),
        declarations=declarations,
    )
    a, b, out = torch.randn(8, 8), torch.randn(8, 8), torch.zeros(8, 8)
    air_library(tmp_path, {"k": text}).kernel("k").launch({"a": a, "b": b, "out": out}, [32], [32])
    torch.testing.assert_close(out, a @ b.t() + 10 * torch.eye(8))


def test_vectors_are_taken_element_by_element(tmp_path: Path) -> None:
    body = """
  %v = load <4 x float>, ptr addrspace(1) %x
  %f = call <4 x float> @air.fma.v4f32(<4 x float> %v, <4 x float> %v, <4 x float> %v)
  %two = shufflevector <4 x float> %v, <4 x float> poison, <2 x i32> <i32 1, i32 2>
  %dot = call float @air.dot.v2f32(<2 x float> %two, <2 x float> %two)
  %test = fcmp ogt <2 x float> %two, <float 1.5, float 1.5>
  %any = call i1 @air.any.v2i1(<2 x i1> %test)
  %all = call i1 @air.all.v2i1(<2 x i1> %test)
  %count = zext i1 %any to i32
  %both = zext i1 %all to i32
  %sum = mul i32 %both, 10
  %questions = add i32 %sum, %count
  %number = uitofp i32 %questions to float
  %c = insertelement <4 x float> %f, float %dot, i64 0
  %d = insertelement <4 x float> %c, float %number, i64 1
  store <4 x float> %d, ptr addrspace(1) %x
"""
    declarations = """
declare <4 x float> @air.fma.v4f32(<4 x float>, <4 x float>, <4 x float>)
declare float @air.dot.v2f32(<2 x float>, <2 x float>)
declare i1 @air.any.v2i1(<2 x i1>)
declare i1 @air.all.v2i1(<2 x i1>)
"""
    arguments = [buffer("x", "float", 0)]
    text = kernel("k", "ptr addrspace(1) %x", arguments, body, declarations=declarations)
    x = torch.tensor([0.0, 1.0, 2.0, 3.0])
    air_library(tmp_path, {"k": text}).kernel("k").launch({"x": x}, [1], [1])
    assert x.tolist() == [5, 1, 6, 12]


def test_the_sine_is_returned_and_the_cosine_written(tmp_path: Path) -> None:
    body = """
  %c = alloca float
  %v = load float, ptr addrspace(1) %x
  %s = call float @air.sincos.f32(float %v, ptr %c)
  %w = load float, ptr %c
  store float %s, ptr addrspace(1) %x
  %p = getelementptr float, ptr addrspace(1) %x, i64 1
  store float %w, ptr addrspace(1) %p
"""
    arguments = [buffer("x", "float", 0)]
    declaration = "declare float @air.sincos.f32(float, ptr)"
    text = kernel("k", "ptr addrspace(1) %x", arguments, body, declarations=declaration)
    x = torch.tensor([1.0, 0.0])
    air_library(tmp_path, {"k": text}).kernel("k").launch({"x": x}, [1], [1])
    assert x.tolist() == pytest.approx([math.sin(1), math.cos(1)], abs=1e-7)
