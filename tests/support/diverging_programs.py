"""Random Metal programs whose lanes diverge and communicate, and a reference that runs the lanes in step."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Lanes = NDArray[np.int64]
Mask = NDArray[np.bool_]
LANE = np.arange(32)


def active_sum(v: Lanes, active: Mask) -> Lanes:
    """What every lane holds after the active ones have added up."""
    return np.full(32, v[active].sum() & 1023)


def _scan(v: Lanes, active: Mask) -> Lanes:
    return np.cumsum(np.where(active, v, 0)) & 255


def _walked(v: Lanes) -> Lanes:
    """What `walk` of HELPERS gives for each lane."""
    results = []
    for x, lane in zip(v.tolist(), LANE.tolist(), strict=True):
        k = 0
        while k < (x ^ lane) & 15 and (k ^ lane) & 7 != 5:
            x = x * 5 + k & 255
            k += 1
        results.append(x)
    return np.array(results)


# `walk` is a loop in which lanes do not communicate and which each leaves after its own number of steps.
HELPERS = """
int total(int x) { return simd_sum(x) & 1023; }
int walk(int v, int lane) {
  for (int k = 0; k < ((v ^ lane) & 15); k++) {
    if (((k ^ lane) & 7) == 5) break;
    v = v * 5 + k & 255;
  }
  return v;
}
"""
# What lanes do together, and alone: Metal, and what it means for the active lanes.
STEPS: dict[str, Callable[[Lanes, Mask], Lanes]] = {
    "v = simd_sum(v) & 1023;": active_sum,
    "v = simd_max(v) ^ lane;": lambda v, active: v[active].max() ^ LANE,
    "v = simd_prefix_inclusive_sum(v) & 255;": _scan,
    "v = simd_shuffle_xor(v, 1) + 1;": lambda v, active: np.where(active[LANE ^ 1], v[LANE ^ 1], 0) + 1,
    "v = total(v);": active_sum,
    "v += 3;": lambda v, active: v + 3,
    "v = walk(v, lane);": lambda v, active: _walked(v),
    "while ((v & 3) != (lane & 3)) v++;": lambda v, active: v + ((LANE & 3) - (v & 3) & 3),
    "v = simd_sum(lane % 5 ? walk(v, lane) : v) & 1023;": lambda v, active: active_sum(
        np.where(LANE % 5 != 0, _walked(v), v), active
    ),
}
CONDITIONS: dict[str, Callable[[Lanes], Mask]] = {
    "lane % 2 == 0": lambda v: LANE % 2 == 0,
    "lane < 10": lambda v: LANE < 10,
    "(v & 1) == 1": lambda v: (v & 1) == 1,
    "lane % 3 == 1": lambda v: LANE % 3 == 1,
    "lane % 4 == 0 || (walk(v, lane) & 1) == 1": lambda v: (LANE % 4 == 0) | (_walked(v) & 1 == 1),
}
SELECTORS: dict[str, Callable[[Lanes], Lanes]] = {
    "lane % 4": lambda v: LANE % 4,
    "v & 3": lambda v: v & 3,
    "walk(v, lane) & 3": lambda v: _walked(v) & 3,
}
COUNTS: dict[str, Lanes] = {"3": np.full(32, 3), "lane % 3 + 1": LANE % 3 + 1}


@dataclass(frozen=True)
class Branch:
    """An `if` with both its branches."""

    condition: str
    then: list[Node]
    otherwise: list[Node]


@dataclass(frozen=True)
class Loop:
    """A `for` whose lanes may go round it a different number of times."""

    count: str
    body: list[Node]


@dataclass(frozen=True)
class Switch:
    """A `switch` that lanes go to different places of; all others go to the last one."""

    selector: str
    places: list[tuple[tuple[int, ...], list[Node]]]
    otherwise: list[Node]


Node = str | Branch | Loop | Switch


def grow(rng: random.Random, depth: int) -> list[Node]:
    """Statements nested at most `depth` deep."""
    kind = rng.random()
    if depth == 0 or kind < 0.25:
        return [rng.choice(list(STEPS))]
    if kind < 0.6:
        then = grow(rng, depth - 1) + grow(rng, depth - 1)
        return [Branch(rng.choice(list(CONDITIONS)), then, grow(rng, depth - 1))]
    if kind < 0.75:
        places = [(values, grow(rng, depth - 1)) for values in ((1,), (3, 0))]
        return [Switch(rng.choice(list(SELECTORS)), places, grow(rng, depth - 1))]
    return [Loop(rng.choice(list(COUNTS)), grow(rng, depth - 1))]


def write(nodes: list[Node], level: int = 1) -> str:
    """The statements in Metal."""
    parts = []
    for node in nodes:
        if isinstance(node, str):
            parts.append(node)
        elif isinstance(node, Branch):
            then, otherwise = write(node.then, level + 1), write(node.otherwise, level + 1)
            parts.append(f"if ({node.condition}) {{\n{then}\n}} else {{\n{otherwise}\n}}")
        elif isinstance(node, Switch):
            places = [
                f"{' '.join(f'case {value}:' for value in values)}\n{write(there, level + 1)}\nbreak;"
                for values, there in node.places
            ]
            last = f"default:\n{write(node.otherwise, level + 1)}"
            parts.append("\n".join([f"switch ({node.selector}) {{", *places, last, "}"]))
        else:
            turn = f"k{level}"
            body = write(node.body, level + 1)
            parts.append(f"for (int {turn} = 0; {turn} < {node.count}; {turn}++) {{\n{body}\n}}")
    return "\n".join(parts)


def run_in_step(nodes: list[Node], v: Lanes, active: Mask) -> Lanes:
    """What the lanes hold behind the statements, which the `active` ones run."""
    for node in nodes:
        if not active.any():
            return v
        if isinstance(node, str):
            v = np.where(active, STEPS[node](v, active), v)
        elif isinstance(node, Branch):
            taken = CONDITIONS[node.condition](v)
            v = run_in_step(node.then, v, active & taken)
            v = run_in_step(node.otherwise, v, active & ~taken)
        elif isinstance(node, Switch):
            chosen, others = SELECTORS[node.selector](v), active
            for values, there in node.places:
                taken = np.isin(chosen, values)
                v = run_in_step(there, v, active & taken)
                others = others & ~taken
            v = run_in_step(node.otherwise, v, others)
        else:
            for turn in range(int(COUNTS[node.count].max())):
                v = run_in_step(node.body, v, active & (COUNTS[node.count] > turn))
    return v


def program(seed: int) -> tuple[str, NDArray[np.int32], NDArray[np.int64]]:
    """A kernel `run(out, x)` for 32 lanes, what `x` holds, and what `out` is to hold."""
    rng = random.Random(seed)
    nodes = [node for _ in range(3) for node in grow(rng, 3)]
    source = (
        f"#include <metal_stdlib>\nusing namespace metal;\n{HELPERS}"
        "kernel void run(device int* out, device const int* x, uint i [[thread_position_in_grid]],"
        f" uint l [[thread_index_in_simdgroup]]) {{\nint lane = l, v = x[i];\n{write(nodes)}\nout[i] = v;\n}}\n"
    )
    x = np.random.default_rng(seed).integers(0, 50, 32).astype(np.int32)
    return source, x, run_in_step(nodes, x.astype(np.int64), np.ones(32, bool))
