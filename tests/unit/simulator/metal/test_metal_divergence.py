"""Random programs whose lanes diverge and communicate, against a reference that runs them in step."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest
from numpy.typing import NDArray

pytest.importorskip("ziglang")

from mpsmith.simulator import metal

Lanes = NDArray[np.int64]
Mask = NDArray[np.bool_]
LANE = np.arange(32)


def active_sum(v: Lanes, active: Mask) -> Lanes:
    return np.full(32, v[active].sum() & 1023)


def scan(v: Lanes, active: Mask) -> Lanes:
    return np.cumsum(np.where(active, v, 0)) & 255


# What lanes do together: Metal, and what it means for the active lanes.
STEPS: dict[str, Callable[[Lanes, Mask], Lanes]] = {
    "v = simd_sum(v) & 1023;": active_sum,
    "v = simd_max(v) ^ lane;": lambda v, active: v[active].max() ^ LANE,
    "v = simd_prefix_inclusive_sum(v) & 255;": scan,
    "v = simd_shuffle_xor(v, 1) + 1;": lambda v, active: np.where(active[LANE ^ 1], v[LANE ^ 1], 0) + 1,
    "v = total(v);": active_sum,
    "v += 3;": lambda v, active: v + 3,
}
CONDITIONS: dict[str, Callable[[Lanes], Mask]] = {
    "lane % 2 == 0": lambda v: LANE % 2 == 0,
    "lane < 10": lambda v: LANE < 10,
    "(v & 1) == 1": lambda v: (v & 1) == 1,
    "lane % 3 == 1": lambda v: LANE % 3 == 1,
}
COUNTS: dict[str, Lanes] = {"3": np.full(32, 3), "lane % 3 + 1": LANE % 3 + 1}


@dataclass(frozen=True)
class Branch:
    condition: str
    then: list[Node]
    otherwise: list[Node]


@dataclass(frozen=True)
class Loop:
    count: str
    body: list[Node]


Node = str | Branch | Loop


def grow(rng: random.Random, depth: int) -> list[Node]:
    kind = rng.random()
    if depth == 0 or kind < 0.25:
        return [rng.choice(list(STEPS))]
    if kind < 0.6:
        then = grow(rng, depth - 1) + grow(rng, depth - 1)
        return [Branch(rng.choice(list(CONDITIONS)), then, grow(rng, depth - 1))]
    return [Loop(rng.choice(list(COUNTS)), grow(rng, depth - 1))]


def write(nodes: list[Node], level: int = 1) -> str:
    parts = []
    for node in nodes:
        if isinstance(node, str):
            parts.append(node)
        elif isinstance(node, Branch):
            then, otherwise = write(node.then, level + 1), write(node.otherwise, level + 1)
            parts.append(f"if ({node.condition}) {{\n{then}\n}} else {{\n{otherwise}\n}}")
        else:
            k = f"k{level}"
            parts.append(f"for (int {k} = 0; {k} < {node.count}; {k}++) {{\n{write(node.body, level + 1)}\n}}")
    return "\n".join(parts)


def run_in_step(nodes: list[Node], v: Lanes, active: Mask) -> Lanes:
    for node in nodes:
        if not active.any():
            return v
        if isinstance(node, str):
            v = np.where(active, STEPS[node](v, active), v)
        elif isinstance(node, Branch):
            taken = CONDITIONS[node.condition](v)
            v = run_in_step(node.then, v, active & taken)
            v = run_in_step(node.otherwise, v, active & ~taken)
        else:
            for turn in range(int(COUNTS[node.count].max())):
                v = run_in_step(node.body, v, active & (COUNTS[node.count] > turn))
    return v


@pytest.mark.parametrize("seed", range(12))
def test_random_programs(seed: int) -> None:
    rng = random.Random(seed)
    nodes = [node for _ in range(3) for node in grow(rng, 3)]
    library = metal.compile(
        "#include <metal_stdlib>\nusing namespace metal;\n"
        "int total(int x) { return simd_sum(x) & 1023; }\n"
        "kernel void k(device int* out, device const int* x, uint i [[thread_position_in_grid]],"
        f" uint l [[thread_index_in_simdgroup]]) {{\nint lane = l, v = x[i];\n{write(nodes)}\nout[i] = v;\n}}\n",
        mode="schedules",
    )
    x = np.random.default_rng(seed).integers(0, 50, 32).astype(np.int32)
    out = np.zeros(32, np.int32)
    library.k(out, x)
    np.testing.assert_array_equal(out, run_in_step(nodes, x.astype(np.int64), np.ones(32, bool)))


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


def test_a_call_through_an_object_waits_for_nobody() -> None:
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
