"""Metal as public projects write it: what Apple's compiler takes and the specification does not say."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mpsmith.simulator import metal
from mpsmith.simulator.metal import MetalRuntimeError, MetalValueError
from support.needs import needs_metal_on_host

needs_metal_on_host()

PREAMBLE = "#include <metal_stdlib>\nusing namespace metal;\n"


def values(source: str, kernel: str = "k", count: int = 4, **options: Any) -> list[float]:
    """What `k(device float* o)` writes, where `o` held 1, 2, 3, ..."""
    out = np.arange(1, count + 1, dtype=np.float32)
    getattr(metal.compile(source, **options), kernel)(out, threads=count)
    return [float(value) for value in out]


def kernel(body: str, type_: str = "float") -> str:
    """A kernel of one thread over a vector or matrix, or of several over floats."""
    guard = "" if type_ == "float" else "if (i != 0) return; "
    parameters = f"device {type_}* o [[buffer(0)]], uint i [[thread_position_in_grid]]"
    return f"kernel void k({parameters}) {{ {guard}{body} }}\n"


WRITTEN = {
    "constructors in each address space": (
        "struct c { float r; constexpr c(float x) thread : r(x) {} constexpr c(float x) constant : r(x) {} };\n"
        "struct d { float s = 3; d() thread = default; d() constant = default; };\n"
        + kernel("c a(2.0f); d b; o[i] = a.r + b.s;"),
        [5, 5, 5, 5],
    ),
    "a method in the constant address space": (
        "struct c { float r; float twice() constant { return 2 * r; } float twice() const thread { return 2 * r; } };\n"
        "constant c kept = {2};\n" + kernel("o[i] = kept.twice();"),
        [4, 4, 4, 4],
    ),
    "fma of a vector with scalars": (
        kernel("o[0] = fma(o[0], 2.0f, o[0]) + fma(2.0f, 3.0f, o[0]);", "float4"),
        [10, 14, 18, 22],
    ),
    "mix and smoothstep with scalars": (
        kernel("o[0] = mix(o[0], 1.0f, 0.5f) + smoothstep(0.0f, 1.0f, o[0]);", "float4"),
        [2, 2.5, 3, 3.5],
    ),
    "clamp, min and max with scalars of another type": (
        kernel("o[0] = clamp(o[0], 2, 3.0f) + min(1, o[0]) + max(o[0], 0);", "float4"),
        [4, 5, 7, 8],
    ),
    "mathematics of a packed vector": (
        kernel("float4 v(1, 2, 3, 4); packed_float4 p = packed_float4(v); o[0] = fmax(p, 3.0f) + pow(v, p);", "float4"),
        [4, 7, 30, 260],
    ),
    "select a scalar": (kernel("o[0] = select(o[0], -1.0f, o[0] > 2.0f);", "float4"), [1, 2, -1, -1]),
    "assert": ("#include <metal_assert>\n" + kernel("assert(i < 100); o[i] = 1;"), [1, 1, 1, 1]),
    "types of the program's own in namespace metal": (
        "namespace metal {\ntemplate <typename T> struct is_empty : bool_constant<__is_empty(T)> {};\n"
        "template <typename... T> struct make_void { typedef void type; };\n"
        "template <typename... T> using void_t = typename make_void<T...>::type;\n}\n"
        "struct nothing {};\n" + kernel("o[i] = metal::is_empty<nothing>::value + metal::is_empty<float>::value;"),
        [1, 1, 1, 1],
    ),
    "a constant called forward": ("constant float forward = 7;\n" + kernel("o[i] = forward;"), [7, 7, 7, 7]),
    "unrolling by an expression of macros": (
        "#define N 4\n" + kernel("\n#pragma unroll (N / 2)\n  for (short j = 0; j < N; ++j) o[i] += j;"),
        [7, 8, 9, 10],
    ),
    "unrolling by a constant": (
        kernel("constexpr int n = 4;\n#pragma clang loop unroll_count(n)\n  for (short j = 0; j < n; ++j) o[i] += j;"),
        [7, 8, 9, 10],
    ),
    "a matrix divided by a scalar": (
        kernel("o[0] = o[0] / 2.0f; o[0] /= 0.5f; o[0] = -o[0];", "float2x2"),
        [-1, -2, -3, -4],
    ),
    "a vector that is filled up with zeros": (
        kernel("float4 v = {5, 6}; uint4 u = {1u, 2u, 3u}; o[0] = v + float4(u);", "float4"),
        [6, 8, 3, 0],
    ),
    "coherent memory": (
        "kernel void k(volatile coherent(system) device float* o, uint i [[thread_position_in_grid]]) { o[i] = 3; }",
        [3, 3, 3, 3],
    ),
    "Apple's own functions": (
        kernel(
            "o[i] = __metal_fma(o[i], 2.0f, 1.0f, __METAL_MAYBE_FAST_MATH__) + __metal_sqrt(4.0f, __METAL_FAST_MATH__)"
            " + __metal_simd_sum(1.0f) + __metal_simd_shuffle(o[i], ushort(1))"
            " + __metal_get_simdgroup_size(ushort()) + __metal_get_thread_index_in_simdgroup(ushort());"
        ),
        [43, 46, 49, 52],
    ),
    "Apple's own limits": (
        "struct s { float v; };\n"
        "template <> struct metal::_numeric_limits_impl<s> { static constexpr s max() { return s{9}; } };\n"
        "constexpr constant bool fits = __is_valid_simdgroup_type<float>::value;\n"
        + kernel("o[i] = numeric_limits<s>::max().v + fits + (numeric_limits<const half>::max() == 65504.0h);"),
        [11, 11, 11, 11],
    ),
    "lanes filled up within a width": (
        kernel(
            "o[i] = simd_shuffle_and_fill_up(o[i], -o[i], ushort(1), ushort(2))"
            " + 10 * simd_shuffle_and_fill_down(o[i], -o[i], ushort(1), ushort(4));"
        ),
        [20 - 2, 30 + 1, 40 - 4, -10 + 3],
    ),
}


@pytest.mark.parametrize("name", WRITTEN)
def test_code_of_projects_compiles_and_computes(name: str) -> None:
    source, expected = WRITTEN[name]
    assert values(PREAMBLE + source) == expected


@pytest.mark.parametrize("name", WRITTEN)
def test_the_pass_with_real_address_spaces_has_nothing_against_it(name: str) -> None:
    assert [d for d in metal.check(PREAMBLE + WRITTEN[name][0], strict=True) if d.severity == "error"] == []


def test_a_vector_with_too_few_parts_in_parentheses_stays_an_error() -> None:
    with pytest.raises(SyntaxError):
        metal.compile(PREAMBLE + kernel("o[0] = float4(1, 2, 3);", "float4"))


# ---------------------------------------------------------------------------------------------- includes and macros
def test_a_header_may_come_twice_and_from_one_of_two_branches(tmp_path: Path) -> None:
    (tmp_path / "twice.h").write_text("inline float NAME() { return VALUE; }\n")
    (tmp_path / "once.h").write_text('#pragma once\n#include "below/deep.h"\n')
    (tmp_path / "below").mkdir()
    (tmp_path / "below/deep.h").write_text('#include "beside.h"\n')  # beside the header that includes it
    (tmp_path / "below/beside.h").write_text("inline float deep() { return 100; }\n")
    program = (
        '#include <metal_stdlib>\n#ifdef NEVER\n#include "once.h"\n#else\n#include "once.h"\n#endif\n'
        '#define NAME f\n#define VALUE 1\n#include "twice.h"\n#undef NAME\n#undef VALUE\n'
        '#define NAME g\n#define VALUE STEP\n#include "twice.h"\n#include "once.h"\n'
        + kernel("o[i] = f() + g() + deep();")
    )
    assert values(program, filename=tmp_path / "k.metal", defines=["STEP=20"]) == [121] * 4
    assert values(program, filename=tmp_path / "k.metal", defines=["STEP=30"]) == [131] * 4, "macros are in the key"
    (tmp_path / "below/beside.h").write_text("inline float deep() { return 200; }\n")
    assert values(program, filename=tmp_path / "k.metal", defines=["STEP=20"]) == [221] * 4, "headers are in the key"


def test_an_error_in_a_header_has_the_included_name(tmp_path: Path) -> None:
    (tmp_path / "wrong.h").write_text("\ninline float f() { return y; }\n")
    (error,) = metal.check('#include "wrong.h"\n', tmp_path / "k.metal")
    assert (error.file, error.line) == ("wrong.h", 2)
    (tmp_path / "wrong.h").write_text('\n#include "missing.h"\n')
    (error,) = metal.check('#include "wrong.h"\n', tmp_path / "k.metal")
    assert (error.file, error.line) == ("wrong.h", 2)
    assert "'missing.h' file not found" in error.message


def test_unsupported_metal_features_are_named() -> None:
    (error,) = metal.check("#include <MetalPerformancePrimitives/MetalPerformancePrimitives.h>\n")
    assert (error.line, error.rule) == (1, "not-supported")
    assert error.message.endswith("the simulator does not support MetalPerformancePrimitives")
    (error,) = metal.check("#include <metal_stdlib>\n#include <metal_tensor>\n")
    assert (error.line, error.message) == (2, "<metal_tensor>: the simulator does not support tensors")
    start = "#include <metal_stdlib>\nusing namespace metal;\n"
    for line, feature in (
        ("kernel void k(visible_function_table<float(float)> t [[buffer(0)]]) {}", "function tables"),
        ("kernel void k(raytracing::instance_acceleration_structure s [[buffer(0)]]) {}", "ray tracing"),
        ("using namespace raytracing;", "ray tracing"),
        ("struct A { command_buffer c [[id(0)]]; };", "indirect command buffers"),
        ("using Meshes = metal::mesh<int, void, 4, 4>;", "mesh shading"),
    ):
        (error,) = metal.check(start + line)
        assert (error.line, error.rule) == (3, "not-supported")
        assert error.message.endswith(f"the simulator does not support {feature}")


# ---------------------------------------------------------------------------------------------- one kernel of many
TEMPLATE = (
    PREAMBLE
    + """template <typename T> kernel void stage(device T* o, uint i [[thread_position_in_grid]]) {
  threadgroup T staged[8192];
  threadgroup T more[16];
  staged[i] = o[i]; more[i] = 1; o[i] = staged[i] + more[i];
}
template [[host_name("stage_half")]] kernel void stage<half>(device half* o, uint i [[thread_position_in_grid]]);
template [[host_name("stage_float")]] kernel void stage<float>(device float* o, uint i [[thread_position_in_grid]]);
"""
)


def test_one_instantiation_that_is_too_large_leaves_the_others() -> None:
    (warning,) = metal.check(TEMPLATE)
    assert (warning.severity, warning.rule) == ("warning", "too-much-threadgroup-memory")
    assert (
        warning.message
        == "32832 bytes of threadgroup memory; the limit is 32768; the pipeline of stage<float> cannot be made"
    )
    library = metal.compile(TEMPLATE)
    out = np.ones(4, np.float16)
    library.stage_half(out, threads=4)
    assert out.tolist() == [2] * 4
    with pytest.raises(MetalRuntimeError, match="32832 bytes of threadgroup memory"):
        _ = library.stage_float


# ---------------------------------------------------------------------------------------------- set at launch
CONSTANTS = (
    PREAMBLE
    + """
#define STEP_INDEX 0
constant int stride [[function_constant(STEP_INDEX)]];
constant bool forward [[function_constant(1)]];
constant float scale [[function_constant(2)]];
constant bool scaled = is_function_constant_defined(scale);
kernel void k(device float* o, device float* unused [[buffer(1), function_constant(scaled)]],
              uint i [[thread_position_in_grid]]) {
  o[i] = (forward ? stride : -stride) * (scaled ? scale : 1);
}
"""
)


def test_function_constants_take_values_by_index_and_by_name() -> None:
    assert values(CONSTANTS, constants={0: 3, "forward": True}) == [3] * 4
    assert values(CONSTANTS, constants={"stride": 3, 1: False, "scale": 0.5}) == [-1.5] * 4
    with pytest.raises(MetalValueError, match="the function constant 'stride' is a str"):
        metal.compile(CONSTANTS, constants={"stride": "3"})  # type: ignore[dict-item]


STAGED = (
    PREAMBLE
    + """kernel void k(device float* o, threadgroup float* kept [[threadgroup(0)]], uint i [[thread_position_in_grid]],
              threadgroup float* more [[threadgroup(1)]]) {
  kept[i] = o[i]; more[i] = 10;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  o[i] = kept[3 - i] + more[i];
}
"""
)


def test_threadgroup_arguments_take_their_length_at_launch() -> None:
    out = np.arange(4, dtype=np.float32)
    k = metal.compile(STAGED, mode="schedules").k
    k(out, threads=4, threadgroup_lengths={0: 16, 1: 16})
    assert out.tolist() == [13, 12, 11, 10]
    with pytest.raises(MetalRuntimeError, match=r"\[\[threadgroup\(1\)\]\] needs a length"):
        k(out, threads=4, threadgroup_lengths={0: 16})
    with pytest.raises(MetalRuntimeError, match="32784 bytes of threadgroup memory; the limit is 32768"):
        k(out, threads=4, threadgroup_lengths={0: 16, 1: 32768})


def test_packed_vectors_take_the_operators_of_integers_and_convert_to_each_other() -> None:
    source = PREAMBLE + (
        "kernel void k(device float* o, device packed_char4* a, uint i [[thread_position_in_grid]]) {"
        " packed_char4 mask = {15, 15, 15, 15}; packed_char4 low = a[i] & mask; packed_char4 high = (a[i] >> 4) & mask;"
        " packed_float4 f = packed_float4(low) * packed_float4(high); packed_char4 rest = (a[i] | low) ^ (low << high);"
        " rest = rest % mask; o[i] = f.x + rest.y * 0; }"
    )
    out = np.zeros(1, np.float32)
    metal.compile(source).k(out, np.array([0x23, 1, 1, 1], np.int8))
    assert out.tolist() == [6]


# ---------------------------------------------------------------------------------------------- what Metal refuses
def test_two_parameters_at_one_buffer_are_refused_unless_a_constant_chooses() -> None:
    twice = "kernel void k(device float* o [[buffer(0)]], device float* p [[buffer(0)]]) { o[0] = 1; p[0] = 2; }"
    (error,) = metal.check(twice)
    assert (error.line, error.rule) == (1, "one-buffer-twice")
    assert error.message == "kernel 'k' binds 'o' and 'p' to buffer 0"
    with pytest.raises(SyntaxError, match="'o' and 'p' to buffer 0"):
        metal.compile(twice)
    one_of_two = (
        "constant bool a [[function_constant(0)]];\nconstant bool b = !a;\n"
        "kernel void k(device float* o [[buffer(0), function_constant(a)]],"
        " device int* p [[buffer(0), function_constant(b)]]) {}"
    )
    assert metal.check(PREAMBLE + one_of_two) == []


def test_a_kernel_may_be_called_like_anything_that_the_code_around_it_needs() -> None:
    names = ["g", "x", "y", "z", "t", "s", "F", "a0", "begin", "end", "group", "count", "table"]
    source = PREAMBLE + "".join(
        f"kernel void {name}(device float* o, uint i [[thread_position_in_grid]]) {{ o[i] += {place}; }}\n"
        for place, name in enumerate(names)
    )
    library = metal.compile(source)
    out = np.zeros(2, np.float32)
    for name in names:
        getattr(library, name)(out, threads=2)
    assert out.tolist() == [sum(range(len(names)))] * 2
