"""Metal programs that use one part of the language each, run on the host and compared with numpy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from mpsmith.simulator import metal
from support.needs import needs_metal_on_host

needs_metal_on_host()

PREAMBLE = "#include <metal_stdlib>\nusing namespace metal;\n"
Array = np.ndarray[Any, np.dtype[Any]]


def run(source: str, *args: Any, kernel: str = "k", mode: metal.Mode = "schedules", **options: Any) -> None:
    library = metal.compile(PREAMBLE + source, mode=mode)
    getattr(library, kernel)(*args, **options)


def per_thread(expression: str, dtype: Any, count: int = 8, before: str = "", **inputs: Array) -> Array:
    """`expression` of thread `i` (and of the inputs, by name), for each thread."""
    names = {"float32": "float", "int32": "int", "uint32": "uint", "int64": "long", "uint64": "ulong"}
    names |= {"float16": "half", "int8": "char", "uint8": "uchar", "int16": "short", "uint16": "ushort", "bool": "bool"}
    out = np.zeros(count, dtype)
    parameters = "".join(f"device const {names[a.dtype.name]}* {n}, " for n, a in inputs.items())
    source = (
        f"{before}\nkernel void k(device {names[np.dtype(dtype).name]}* out, {parameters}"
        f"uint i [[thread_position_in_grid]]) {{ out[i] = {expression}; }}"
    )
    run(source, out, *inputs.values(), threads=count)
    return out


def test_float_literals_without_suffix_are_float() -> None:
    third = per_thread("(1.0 / 3.0 == 1.0f / 3.0f) && sizeof(1.5) == 4", np.int32)
    assert third.all()


def test_half_and_bfloat_literals() -> None:
    assert per_thread("sizeof(1.5h) == 2 && sizeof(1.5bf) == 2 && 2h == half(2.0) && 1e1h == 10.0h", np.int32).all()


def test_half_literals_in_a_branch_without_braces_that_lanes_share() -> None:
    out = np.zeros(32, np.float32)
    run(
        "kernel void k(device float* out, uint i [[thread_position_in_grid]]) {"
        " half v = half(i); if (i < 2) v = simd_sum(v) * 2.0h + half((1.5bf)); out[i] = float(v); }",
        out,
        threads=32,
        group_size=32,
    )
    assert out.tolist() == [3.5, 3.5, *range(2, 32)]


def test_half_rounds_after_each_operation() -> None:
    x = np.array([0.1, 0.2, 1000.5, 3.14159, 65000], np.float16)
    actual = per_thread("x[i] * x[i] + x[i]", np.float16, 5, x=x)
    with np.errstate(over="ignore"):
        expected = x * x + x
    np.testing.assert_array_equal(actual, expected)


def test_casts_between_half_and_bfloat_go_through_float() -> None:
    source = "bfloat b = 1.5f; half h = half(b) + (half)b + static_cast<half>(b); bfloat c = bfloat(h);"
    assert per_thread("f(0) == 4.5f", np.int32, before=f"float f(int) {{ {source} return c; }}").all()


def test_vectors_from_parts_and_swizzles() -> None:
    before = """
    float4 build(float a) {
      float2 p(a, a + 1);
      float4 v(p, 7.0, a);
      v.zw = v.yx;            // assignment through a swizzle
      v.xy += float2(1, 2);
      return v.wzyx;
    }"""
    built = per_thread("build(i)[3] * 1000 + build(i)[2] * 100 + build(i)[1] * 10 + build(i)[0]", np.float32, 4, before)
    expected = [(a + 1) * 1000 + (a + 3) * 100 + (a + 1) * 10 + a for a in range(4)]
    np.testing.assert_array_equal(built, expected)


def test_swizzle_as_function_argument_and_operand() -> None:
    actual = per_thread(
        "dot(f(i).xyz, f(i).zyx) + (f(i).xy * f(i).zw).y",
        np.float32,
        3,
        "float4 f(float a) { return float4(a, 1, 2, 3); }",
    )
    np.testing.assert_array_equal(actual, [a * 2 + 1 + 2 * a + 3 for a in range(3)])


def test_struct_members_that_look_like_swizzles() -> None:
    before = "struct P { float2 xy; int rg; };"
    assert per_thread("P{float2(3, 4), 5}.xy.y + P{float2(3, 4), 5}.rg", np.float32, 1, before)[0] == 9


def test_packed_vectors_are_not_aligned() -> None:
    x = np.arange(12, dtype=np.float32)
    out = np.zeros(4, np.float32)
    run(
        "kernel void k(device float* out, device packed_float3* x, uint i [[thread_position_in_grid]]) {"
        " float3 v = x[i]; x[i] = v * 2.0; out[i] = v.x + x[i].z; }",
        *(out, x),
        threads=4,
    )
    np.testing.assert_array_equal(out, [0 + 4, 3 + 10, 6 + 16, 9 + 22])
    np.testing.assert_array_equal(x, np.arange(12) * 2)


def test_sizes_of_vectors() -> None:
    expression = "sizeof(float3) == 16 && sizeof(packed_float3) == 12 && alignof(half4) == 8 && sizeof(bool4) == 4"
    assert per_thread(expression, np.int32).all()


def test_comparisons_of_vectors_give_bool_vectors() -> None:
    expression = "all(float2(1, 2) < float2(2, 3)) && any(int2(1, 0) == 1) && !all(int2(1, 0) == 1)"
    assert per_thread(expression, np.int32).all()
    assert per_thread("select(float2(1, 2), float2(3, 4), bool2(true, false)).x", np.float32, 1)[0] == 3


@pytest.mark.parametrize(
    ("expression", "reference"),
    [
        ("exp(x[i])", np.exp),
        ("precise::log(abs(x[i]))", lambda x: np.log(np.abs(x))),
        ("precise::exp(int(x[i]))", lambda x: np.exp(np.trunc(x))),
        ("rsqrt(abs(x[i]))", lambda x: 1 / np.sqrt(np.abs(x))),
        ("sinpi(x[i])", lambda x: np.sin(np.pi * x)),
        ("fract(x[i])", lambda x: x - np.floor(x)),
        ("saturate(x[i])", lambda x: np.clip(x, 0, 1)),
        ("sign(x[i])", np.sign),
        ("clamp(x[i], -1.0f, 1.0f)", lambda x: np.clip(x, -1, 1)),
        ("mix(x[i], 1.0f, 0.25f)", lambda x: x + (1 - x) * 0.25),
        ("fma(x[i], x[i], 1.0f)", lambda x: x * x + 1),
        ("rint(x[i])", np.rint),
        ("fast::tanh(x[i])", np.tanh),
        ("copysign(2.0f, x[i])", lambda x: np.copysign(2, x)),
        ("ldexp(x[i], 3)", lambda x: x * 8),
        ("length(float2(x[i], 1))", lambda x: np.hypot(x, 1)),
    ],
)
def test_float_functions(expression: str, reference: Any) -> None:
    x = np.array([-2.5, -1.0, -0.3, 0.2, 0.5, 1.5, 2.5, 7.25], np.float32)
    actual = per_thread(expression, np.float32, 8, x=x)
    np.testing.assert_allclose(actual, reference(x.astype(np.float64)), rtol=2e-6, atol=1e-6)


def test_multiples_of_pi_have_exact_zeros_and_poles() -> None:
    x = np.array([1, -3, 7, 1e6], np.float32)
    assert not per_thread("sinpi(x[i])", np.float32, 4, x=x).any()
    assert not per_thread("cospi(x[i] + 0.5f)", np.float32, 4, x=x).any()
    assert np.isinf(per_thread("tanpi(x[i] + 0.5f)", np.float32, 4, x=x)).all()


def test_neighbours_and_parts_of_half_are_those_of_half() -> None:
    x = np.array([0, 1, -1, 0.3, 65504, -6e-8, 2, np.inf], np.float16)
    y = np.array([1, 2, 1, -1, np.inf, 0, 2, 0], np.float16)
    with np.errstate(over="ignore"):
        expected = np.nextafter(x, y)
    np.testing.assert_array_equal(per_thread("nextafter(x[i], y[i])", np.float16, x=x, y=y), expected)
    small = np.array([-6e-8, 0.25, -0.25, 3.5], np.float16)
    below_one = np.float16(1) - np.float16(2**-11)
    expected = np.array([below_one, 0.25, 0.75, 0.5], np.float16)
    np.testing.assert_array_equal(per_thread("precise::fract(x[i])", np.float16, 4, x=small), expected)
    bits = per_thread("as_type<short>(nextafter(bfloat(float(x[i])), bfloat(0.0f)))", np.int16, 1, x=x[1:2])
    assert bits[0] == 0x3F7F


def test_minimum_gives_way_to_the_number() -> None:
    actual = per_thread("i == 0 ? min(NAN, 3.0f) : i == 1 ? max(2.0f, NAN) : fmin(NAN, 1.0f)", np.float32, 3)
    np.testing.assert_array_equal(actual, [3, 2, 1])


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("popcount(0xF0F0u)", 8),
        ("clz(1u)", 31),
        ("ctz(8u)", 3),
        ("clz((ushort)1)", 15),
        ("reverse_bits(1u)", 2**31),
        ("rotate(0x80000001u, 1u)", 3),
        ("mulhi(0xFFFFFFFFu, 2u)", 1),
        ("extract_bits(0xABCDu, 4, 8)", 0xBC),
        ("insert_bits(0u, 0xFu, 4, 4)", 0xF0),
        ("addsat(0xFFFFFFFFu, 5u)", 2**32 - 1),
        ("absdiff(3u, 5u)", 2),
        ("as_type<uint>(1.0f)", 0x3F800000),
        ("pack_float_to_unorm4x8(float4(0, 1, 0.5, 2))", 0xFF80FF00),
        ("(uint)(unpack_unorm4x8_to_float(0x000000FFu).x)", 1),
        ("numeric_limits<uint>::max()", 2**32 - 1),
    ],
)
def test_integer_functions(expression: str, expected: int) -> None:
    assert per_thread(expression, np.uint32, 1)[0] == expected


def test_casts_to_integers_saturate_and_overflow_wraps() -> None:
    x = np.array([1e10, -1e10, np.nan, 2.9, -2.9], np.float32)
    np.testing.assert_array_equal(per_thread("(int)x[i]", np.int32, 5, x=x), [2**31 - 1, -(2**31), 0, 2, -2])
    np.testing.assert_array_equal(per_thread("(uint)x[i]", np.uint32, 5, x=x), [2**32 - 1, 0, 0, 2, 0])
    n = np.array([2**31 - 1], np.int32)
    assert per_thread("n[i] + 1 < n[i]", np.int32, 1, n=n)[0] == 1


def test_templates_lambdas_and_arrays() -> None:
    before = """
    template <typename T, int N> struct Sum { T operator()(thread const array<T, N>& v) const {
      T s = 0; for (int i = 0; i < N; i++) s += v[i]; return s; } };
    template <typename F> float twice(F f, float x) { return f(f(x)); }
    """
    source = "Sum<float, 3>{}(array<float, 3>{1, 2, 3}) + twice([](float x) { return x * x; }, 2)"
    assert per_thread(source, np.float32, 1, before)[0] == 22


def test_overloads_that_differ_by_address_space_only() -> None:
    before = """
    float first(device const float* p) { return p[0]; }
    float first(threadgroup const float* p) { return p[0]; }
    float first(thread const float* p) { return p[0]; }
    """
    x = np.array([5.0], np.float32)
    assert per_thread("first(x)", np.float32, 1, before, x=x)[0] == 5


def test_kernels_by_host_name_in_all_forms_of_instantiation() -> None:
    floats, integers = np.zeros(4, np.float32), np.zeros(4, np.int32)
    library = metal.compile(
        PREAMBLE
        + """
    namespace deep { template <typename T> kernel void fill(
        device T* out [[buffer(0)]], constant T& value [[buffer(1)]], uint i [[thread_position_in_grid]]) {
      out[i] = value; } }
    template [[host_name("fill_restated")]] kernel void deep::fill<float>(
        device float* out [[buffer(0)]], constant float& value [[buffer(1)]], uint i [[thread_position_in_grid]]);
    template [[host_name("fill_" "decltype")]] [[kernel]] decltype(deep::fill<int>) deep::fill<int>;
    [[kernel]] void plain(device float* out, uint i [[thread_position_in_grid]]) { out[i] = i; }
    """
    )
    assert sorted(dir(library)) == ["fill_decltype", "fill_restated", "plain"]
    library.fill_restated(floats, 2.5)
    np.testing.assert_array_equal(floats, 2.5)
    library.fill_decltype(integers, 7, arg_casts="int32")
    np.testing.assert_array_equal(integers, 7)
    library.plain(floats)
    np.testing.assert_array_equal(floats, range(4))


def test_function_constants_are_undefined_and_zero() -> None:
    before = """
    constant bool flag [[function_constant(0)]];
    constant bool use = is_function_constant_defined(flag) ? flag : true;
    """
    assert per_thread("use && !flag", np.int32, 1, before)[0] == 1


def test_all_positions_of_a_thread() -> None:
    out = np.zeros((2, 3, 4, 6), np.uint32)
    run(
        """
    kernel void k(device uint* out, uint3 p [[thread_position_in_grid]], uint3 n [[threads_per_grid]],
        ushort3 t [[thread_position_in_threadgroup]], uint3 g [[threadgroup_position_in_grid]],
        uint3 tn [[threads_per_threadgroup]], uint3 gn [[threadgroups_per_grid]],
        uint ti [[thread_index_in_threadgroup]]) {
      device uint* o = out + 6 * (p.x + n.x * (p.y + n.y * p.z));
      o[0] = ti; o[1] = t.x; o[2] = g.x; o[3] = tn.x; o[4] = gn.x; o[5] = t.y;
    }""",
        out,
        threads=(4, 3, 2),
        group_size=(3, 2, 1),
    )
    assert out[0, 0, 3].tolist() == [0, 0, 1, 1, 2, 0]  # the last group of a row has one column
    assert out[1, 1, 2].tolist() == [5, 2, 0, 3, 2, 1]


def test_scalar_position_takes_x() -> None:
    out = np.zeros(6, np.uint32)
    run("kernel void k(device uint* out, ushort i [[thread_position_in_grid]]) { out[i] = i; }", out)
    np.testing.assert_array_equal(out, range(6))


TREE = """
kernel void k(device float* out, device const float* x, uint t [[thread_index_in_threadgroup]],
    uint g [[threadgroup_position_in_grid]], uint i [[thread_position_in_grid]], uint n [[threads_per_threadgroup]]) {
  threadgroup float partial[256], unused[2];
  threadgroup float total;
  partial[t] = x[i];
  threadgroup_barrier(mem_flags::mem_threadgroup);
  for (uint k = n / 2; k > 0; k /= 2) {
    if (t < k) partial[t] += partial[t + k];
    threadgroup_barrier(mem_flags::mem_threadgroup);
  }
  if (t == 0) { total = partial[0]; unused[0] = 0; }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  out[i] = total;
}
"""


@pytest.mark.parametrize("mode", ["fast", "schedules", "checked"])
def test_tree_reduction_with_barriers(mode: metal.Mode) -> None:
    x = np.random.default_rng(0).standard_normal(1024).astype(np.float32)
    out = np.zeros_like(x)
    run(TREE, out, x, threads=1024, group_size=256, mode=mode)
    np.testing.assert_allclose(out, np.repeat(x.reshape(4, 256).sum(1), 256), rtol=1e-4)


@pytest.mark.parametrize(
    ("expression", "reference"),
    [
        ("simd_sum(x[i])", lambda x: np.full(32, x.sum())),
        ("simd_max(x[i])", lambda x: np.full(32, x.max())),
        ("simd_min(x[i])", lambda x: np.full(32, x.min())),
        ("simd_product((x[i] & 1) + 1)", lambda x: np.full(32, ((x & 1) + 1).prod(dtype=np.int32))),
        ("simd_and(x[i])", lambda x: np.full(32, np.bitwise_and.reduce(x))),
        ("simd_or(x[i])", lambda x: np.full(32, np.bitwise_or.reduce(x))),
        ("simd_xor(x[i])", lambda x: np.full(32, np.bitwise_xor.reduce(x))),
        ("simd_prefix_inclusive_sum(x[i])", np.cumsum),
        ("simd_prefix_exclusive_sum(x[i])", lambda x: np.cumsum(x) - x),
        ("simd_shuffle(x[i], 31 - i)", lambda x: x[::-1]),
        ("simd_shuffle_xor(x[i], 5)", lambda x: x[np.arange(32) ^ 5]),
        ("simd_shuffle_up(x[i], 2)", lambda x: np.concatenate([x[:2], x[:-2]])),
        ("simd_shuffle_down(x[i], 2)", lambda x: np.concatenate([x[2:], x[-2:]])),
        ("simd_shuffle_rotate_down(x[i], 3)", lambda x: np.roll(x, -3)),
        ("simd_shuffle_rotate_up(x[i], 3)", lambda x: np.roll(x, 3)),
        ("simd_shuffle_and_fill_up(x[i], -x[i], 3)", lambda x: np.concatenate([-x[-3:], x[:-3]])),
        ("simd_shuffle_and_fill_down(x[i], -x[i], 3)", lambda x: np.concatenate([x[3:], -x[:3]])),
        ("simd_broadcast(x[i], 7)", lambda x: np.full(32, x[7])),
        ("simd_broadcast_first(x[i])", lambda x: np.full(32, x[0])),
        ("simd_is_first()", lambda x: np.arange(32) == 0),
        ("simd_all(x[i] > -1000) && simd_any(x[i] == x[3])", lambda x: np.ones(32)),
        ("(int)((simd_vote::vote_t)simd_ballot(i % 2 == 0))", lambda x: np.full(32, 0x55555555)),
        ("quad_sum(x[i])", lambda x: np.repeat(x.reshape(8, 4).sum(1), 4)),
        ("quad_shuffle_xor(x[i], 1)", lambda x: x[np.arange(32) ^ 1]),
        ("quad_broadcast(x[i], 2)", lambda x: np.repeat(x.reshape(8, 4)[:, 2], 4)),
        ("quad_prefix_inclusive_sum(x[i])", lambda x: x.reshape(8, 4).cumsum(1).reshape(-1)),
    ],
)
def test_simd_operations(expression: str, reference: Any) -> None:
    x = np.random.default_rng(1).integers(-50, 50, 32).astype(np.int32)
    np.testing.assert_array_equal(per_thread(expression, np.int32, 32, x=x), reference(x))


def test_simd_operations_on_diverged_lanes() -> None:
    before = """
    int branches(int i, int v) {
      int r;
      if (i % 4 == 0) r = simd_sum(v);
      else if (i % 4 == 1) r = simd_sum(v) * 100;
      else r = -1;
      return r + simd_sum(1) * 10000;   // all lanes meet again
    }"""
    x = np.arange(32, dtype=np.int32)
    actual = per_thread("branches(i, x[i])", np.int32, 32, before, x=x)
    expected = np.full(32, -1)
    expected[0::4] = x[0::4].sum()
    expected[1::4] = x[1::4].sum() * 100
    np.testing.assert_array_equal(actual, expected + 320000)


def test_simd_operations_in_a_loop_that_lanes_leave_early() -> None:
    before = """
    int loop(int i) { int s = 0; for (int k = 0; k <= i; k++) s += simd_sum(1); return s; }
    """
    actual = per_thread("loop(i)", np.int32, 32, before)
    np.testing.assert_array_equal(actual, np.cumsum(32 - np.arange(32)))


def test_last_simdgroup_may_be_short() -> None:
    actual = per_thread("simd_sum(1)", np.int32, 40)
    np.testing.assert_array_equal(actual, [32] * 32 + [8] * 8)


@pytest.mark.parametrize("dtype", ["half", "bfloat"])
def test_simdgroup_matrices_multiply(dtype: str) -> None:
    generator = np.random.default_rng(2)
    a, b = (generator.integers(-4, 4, (8, 8)).astype(np.float32) for _ in range(2))
    out = np.zeros((8, 8), np.float32)
    run(
        f"""
    kernel void k(device float* out, device const float* a, device const float* b,
        uint i [[thread_index_in_threadgroup]]) {{
      threadgroup {dtype} ta[64], tb[64];
      for (uint k = i; k < 64; k += 32) {{ ta[k] = {dtype}(a[k]); tb[k] = {dtype}(b[k]); }}
      threadgroup_barrier(mem_flags::mem_threadgroup);
      simdgroup_matrix<{dtype}, 8, 8> ma, mb;
      simdgroup_float8x8 mc = make_filled_simdgroup_matrix<float, 8>(1.0f);
      simdgroup_load(ma, ta, 8);
      simdgroup_load(mb, tb, 8, ulong2(0, 0), true);
      simdgroup_multiply_accumulate(mc, ma, mb, mc);
      simdgroup_store(mc, out, 8);
    }}""",
        *(out, a, b),
        threads=32,
        mode="checked",
    )
    np.testing.assert_array_equal(out, a @ b.T + 1)


def test_atomics() -> None:
    counts = np.zeros(4, np.int32)
    total = np.zeros(1, np.float32)
    extremes = np.array([2**63, 0], np.uint64)
    run(
        """
    kernel void k(device atomic_int* counts, device atomic<float>* total, device atomic_ulong* extremes,
        uint i [[thread_position_in_grid]]) {
      atomic_fetch_add_explicit(counts + i % 4, 1, memory_order_relaxed);
      atomic_fetch_add_explicit(total, 0.5f, memory_order_relaxed);
      atomic_min_explicit(extremes, (ulong)i + 5, memory_order_relaxed);
      atomic_max_explicit(extremes + 1, (ulong)i, memory_order_relaxed);
      int seen = atomic_load_explicit(counts, memory_order_relaxed);
      while (!atomic_compare_exchange_weak_explicit(counts, &seen, seen, memory_order_relaxed, memory_order_relaxed)) {}
    }""",
        *(counts, total, extremes),
        threads=100,
        mode="checked",
    )
    np.testing.assert_array_equal(counts, 25)
    assert total[0] == 50
    assert extremes.tolist() == [5, 99]


def test_threadgroup_atomics() -> None:
    out = np.zeros(2, np.uint32)
    run(
        """
    kernel void k(device uint* out, uint t [[thread_index_in_threadgroup]], uint g [[threadgroup_position_in_grid]]) {
      threadgroup atomic_uint n;
      if (t == 0) atomic_store_explicit(&n, 0u, memory_order_relaxed);
      threadgroup_barrier(mem_flags::mem_threadgroup);
      atomic_fetch_add_explicit(&n, t, memory_order_relaxed);
      threadgroup_barrier(mem_flags::mem_threadgroup);
      if (t == 0) out[g] = atomic_load_explicit(&n, memory_order_relaxed);
    }""",
        out,
        threads=128,
        group_size=64,
        mode="checked",
    )
    np.testing.assert_array_equal(out, 64 * 63 / 2)


def test_preprocessor_macros_and_predefined_names() -> None:
    before = """
    #define TWICE(x) ((x) + (x))
    #if __METAL_VERSION__ >= 300 && defined(__METAL__)
    constant float base = M_PI_F;
    #endif
    """
    assert per_thread("TWICE(base) == 2 * M_PI_F && INFINITY > FLT_MAX && HALF_MAX == 65504", np.int32, 1, before)[0]


def test_matrices() -> None:
    expression = (
        "(float2x2(float2(1, 2), float2(3, 4)) * float2(5, 6)).y + transpose(float2x2(float2(1, 2), float2(3, 4)))[0].y"
    )
    assert per_thread(expression, np.float32, 1)[0] == 2 * 5 + 4 * 6 + 3


def test_long_arithmetic_and_shifts() -> None:
    x = np.array([2**40, -(2**40)], np.int64)
    np.testing.assert_array_equal(per_thread("x[i] * 3 + (1l << 35)", np.int64, 2, x=x), x * 3 + 2**35)


@pytest.mark.parametrize(
    ("operator", "expected"),
    [
        ("+", (13, 27)),
        ("-", (11, 21)),
        ("*", (12, 72)),
        ("/", (12, 8)),
        ("%", (0, 0)),
        ("&", (0, 0)),
        ("|", (13, 27)),
        ("^", (13, 27)),
        ("<<", (24, 192)),
        (">>", (6, 3)),
    ],
)
def test_compound_assignment_through_a_swizzle(operator: str, expected: tuple[int, int]) -> None:
    """`v.zw = (12, 24)` and the operand `(1, 3)`; what the swizzle does not name stays."""
    before = f"int4 change() {{ int4 v(5, 7, 12, 24); v.zw {operator}= int2(1, 3); return v; }}"
    actual = per_thread("change()[i]", np.int32, 4, before)
    np.testing.assert_array_equal(actual, [5, 7, *expected])


def test_compound_assignment_through_a_swizzle_that_turns_round() -> None:
    before = "uint3 change() { uint3 v(1, 64, 256); v.zy >>= uint2(2, 5); return v; }"
    np.testing.assert_array_equal(per_thread("change()[i]", np.uint32, 3, before), [1, 2, 64])
