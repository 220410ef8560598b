"""Random programs whose lanes diverge and communicate, against a reference that runs them in step."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from mpsmith.simulator import metal
from support.diverging_programs import LANE, STEPS, program
from support.needs import needs_metal_on_host

needs_metal_on_host()


@pytest.mark.parametrize("seed", range(12))
def test_random_programs(seed: int) -> None:
    source, x, expected = program(seed)
    out = np.zeros(32, np.int32)
    metal.compile(source, mode="schedules").run(out, x)
    np.testing.assert_array_equal(out, expected)


def lanes(body: str, helpers: str = "") -> NDArray[np.int32]:
    out = np.zeros(32, np.int32)
    metal.compile(
        f"#include <metal_stdlib>\nusing namespace metal;\n{helpers}\n"
        f"kernel void k(device int* out, uint lane [[thread_index_in_simdgroup]]) {{\n{body}\n}}",
        mode="schedules",
    ).k(out)
    return out


def test_lanes_that_return_early_from_a_function_wait_for_the_others() -> None:
    helper = "int f(int lane) { if (lane < 8) return 1000; return simd_sum(1); }"
    np.testing.assert_array_equal(
        lanes("out[lane] = f(lane) + 10000 * simd_sum(1);", helper), np.where(LANE < 8, 1000, 24) + 320000
    )


def test_a_call_through_an_object_does_not_wait() -> None:
    helper = """
    struct Sum { int operator()(int x) { return simd_sum(x); } };
    struct Add {
      int operator()(int a, int b) { return a + b; }
      int operator()(int a, int b, int c) { return this->operator()(a, b) + (int)(c); }
    };"""
    body = """
    Add add; Sum sum;
    int s = 0;
    for (uint i = lane; i < 50; i += 32) s = add(s, 1, 0);
    out[lane] = sum(s);"""
    np.testing.assert_array_equal(lanes(body, helper), np.full(32, 50))


def test_break_and_continue() -> None:
    body = """
    int s = 0;
    for (int k = 0; k < 4; k++) {
      if (lane % 4 == 0 && k == 2) break;
      if (lane % 2 == 1) continue;
      s += simd_sum(1);
    }
    out[lane] = s * 100 + simd_sum(1);"""
    expected = np.where(LANE % 2 == 1, 0, np.where(LANE % 4 == 0, 32, 32 + 16)) * 100 + 32
    np.testing.assert_array_equal(lanes(body), expected)


def test_switch_while_and_do() -> None:
    body = """
    int s = 0, n = lane % 3;
    switch (lane % 3) {
      case 0: s = simd_sum(1); break;
      case 1: s = simd_sum(2);
      default: s += 1;
    }
    while (n-- > 0) s += 100 * simd_sum(1);
    do s += 10000 * simd_sum(1); while (s < 0);
    out[lane] = s;"""
    sizes = np.bincount(LANE % 3)
    first = np.array([sizes[0], 2 * sizes[1] + 1, 1])[LANE % 3]
    loop = np.array([0, 100 * (32 - sizes[0]), 100 * (32 - sizes[0] + sizes[2])])[LANE % 3]
    np.testing.assert_array_equal(lanes(body), first + loop + 320000)


@pytest.mark.parametrize(
    "form",
    [
        "if (lane % 4 == 1) {step} else {step}",
        "switch (lane % 4) {{ case 1: {step} break; case 3: case 0: {step} break; default: {step} }}",
    ],
)
def test_lanes_of_branches_that_end_alike_do_not_reconverge(form: str) -> None:
    """Compilers let such branches share their ends, and the calls in which lanes wait."""
    step = "v = simd_shuffle_xor(v, 1) + 1;"
    places = [(1,), (0, 2, 3)] if form.startswith("if") else [(1,), (0, 3), (2,)]
    expected = np.zeros(32, np.int64)
    for place in places:
        active = np.isin(LANE % 4, place)
        expected += np.where(active, STEPS[step](LANE, active), 0)
    body = f"int v = lane; {form.format(step=step)} out[lane] = v;"
    np.testing.assert_array_equal(lanes(body), expected)


def test_labels_of_any_type_in_a_template() -> None:
    helper = """
    enum class Kind : uchar { none, some, all };
    template <int LIMIT> int f(Kind kind, long n) {
      constexpr int more = LIMIT + 1;
      switch (n) {
        case LIMIT: return simd_sum(1);
        case more: break;
        default: n = simd_sum(100);
      }
      switch (kind) {
        case Kind::some: return n + simd_sum(1000);
        case Kind::all:
        case Kind::none: return n;
      }
      return -1;
    }"""
    kinds = np.array([0, 1, 2, 1])[LANE % 4]
    n = np.where(LANE % 3 == 1, 1, 100 * np.sum(LANE % 3 == 2))
    several = 1000 * np.sum((kinds == 1) & (LANE % 3 != 0))
    expected = np.where(LANE % 3 == 0, np.sum(LANE % 3 == 0), n + np.where(kinds == 1, several, 0))
    body = """
    const Kind kinds[4] = {Kind::none, Kind::some, Kind::all, Kind::some};
    out[lane] = f<0>(kinds[lane % 4], lane % 3);"""
    np.testing.assert_array_equal(lanes(body, helper), expected)
