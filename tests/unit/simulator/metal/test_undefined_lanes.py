"""Inactive lanes of a SIMD group: their values, and whether results depend on them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from mpsmith.simulator import metal
from mpsmith.simulator.metal import UndefinedLanesError
from support.needs import needs_metal_on_host

needs_metal_on_host()

PREAMBLE = "#include <metal_stdlib>\nusing namespace metal;\n"
ARGUMENTS = "device int* out, device const int* x, uint t [[thread_index_in_threadgroup]]"
# The sum of one threadgroup: in a SIMD group with fewer than 32 lanes it adds what inactive ones hold.
SUM = """
  int v = x[t];
  for (ushort d = 16; d > 0; d /= 2)
    v += simd_shuffle_down(v, d);
  if (t == 0) out[0] = v;"""


def run(body: str, x: NDArray[np.int32], mode: metal.Mode) -> NDArray[np.int32]:
    out = np.full(64, 9, np.int32)
    metal.compile(f"{PREAMBLE}kernel void k({ARGUMENTS}) {{{body}\n}}", mode=mode).k(
        out, x, threads=len(x), group_size=len(x)
    )
    return out


@pytest.mark.parametrize("mode", ["fast", "schedules"])
def test_inactive_lanes_hold_zero(mode: metal.Mode) -> None:
    assert run(SUM, np.arange(20, dtype=np.int32), mode)[0] == 190


def test_a_sum_over_inactive_lanes_relies_on_them() -> None:
    place = r"simulated Metal kernel 'k' \(program_source:3\): relies on undefined lanes: "
    what = r"byte 0 of argument 0 \('out'\) differs if they hold 0xFF and not 0; "
    with pytest.raises(UndefinedLanesError, match=place + what + r"simd_shuffle_down reads an inactive lane") as caught:
        run(SUM, np.arange(20, dtype=np.int32), "checked")
    assert str(caught.value).endswith("(program_source:6)")  # the line of the operation
    assert "out of bounds" not in str(caught.value)
    assert "race" not in str(caught.value)


def test_a_full_group_and_a_value_that_is_thrown_away_are_fine() -> None:
    assert run(SUM, np.arange(32, dtype=np.int32), "checked")[0] == 496
    guarded = SUM.replace(
        "v += simd_shuffle_down(v, d)", "{ int o = simd_shuffle_down(v, d); v += t + d < 20 ? o : 0; }"
    )
    assert run(guarded, np.arange(20, dtype=np.int32), "checked")[0] == 190


@pytest.mark.parametrize(("sign", "operation"), [(1, "max"), (-1, "max"), (1, "min"), (-1, "min")])
def test_extrema_of_either_sign_read_inactive_lanes(sign: int, operation: str) -> None:
    body = SUM.replace("v += simd_shuffle_down(v, d)", f"v = {operation}(v, simd_shuffle_down(v, d))")
    with pytest.raises(UndefinedLanesError):
        run(body, sign * np.arange(1, 21, dtype=np.int32), "checked")


@pytest.mark.parametrize("operation", ["max", "min"])
def test_extrema_of_floats_that_ignore_nan(operation: str) -> None:
    source = f"""{PREAMBLE}kernel void k(device float* out, uint t [[thread_index_in_threadgroup]]) {{
      float v = t + 1.0f;
      for (ushort d = 16; d > 0; d /= 2) v = f{operation}(v, simd_shuffle_down(v, d));
      if (t == 0) out[0] = v;
    }}"""
    with pytest.raises(UndefinedLanesError):
        metal.compile(source, mode="checked").k(np.zeros(1, np.float32), threads=20, group_size=20)


def test_a_failure_that_only_poison_causes_is_the_lanes() -> None:
    body = "int from = simd_shuffle(int(t), 31); out[t] = x[from];"  # an index out of an inactive lane
    with pytest.raises(UndefinedLanesError, match=r"with bytes of 0xFF in inactive lanes it fails: out of bounds load"):
        run(body, np.arange(20, dtype=np.int32), "checked")


@pytest.mark.parametrize(
    ("call", "operation"),
    [
        ("simd_shuffle(v, 31)", "simd_shuffle"),
        ("simd_broadcast(v, 31)", "simd_broadcast"),
        ("simd_shuffle_xor(v, 16)", "simd_shuffle_xor"),
        ("simd_shuffle_rotate_up(v, 1)", "simd_shuffle_rotate_up"),
        ("simd_shuffle_rotate_down(v, 1)", "simd_shuffle_rotate_down"),
        ("simd_shuffle_and_fill_down(v, 5, 1)", "simd_shuffle_and_fill_down"),
        ("simd_shuffle_and_fill_up(v, 5, 1)", "simd_shuffle_and_fill_up"),
        ("quad_shuffle(v, 3)", "quad_shuffle"),
    ],
)
def test_the_operation_is_named(call: str, operation: str) -> None:
    with pytest.raises(UndefinedLanesError, match=rf"; {operation} reads an inactive lane"):
        run(f"int v = x[t]; out[t] = {call};", np.arange(18, dtype=np.int32), "checked")


@pytest.mark.parametrize(
    "call",
    [
        "simd_sum(v)",
        "simd_prefix_exclusive_sum(v)",
        "simd_broadcast_first(v)",
        "simd_any(v > 3)",
        "simd_shuffle_up(v, 1)",
        "quad_max(v)",
        "int(ulong(simd_ballot(v > 3)))",
    ],
)
def test_operations_on_active_lanes_are_accepted(call: str) -> None:
    run(f"int v = x[t]; out[t] = {call};", np.arange(18, dtype=np.int32), "checked")


def test_lanes_of_another_branch_are_inactive() -> None:
    body = "int v = x[t]; if (t % 2) v += simd_shuffle_xor(v, 1); out[t] = v;"
    x = np.arange(32, dtype=np.int32)
    np.testing.assert_array_equal(run(body, x, "fast")[:32], x)
    with pytest.raises(UndefinedLanesError, match=r"byte 4 of argument 0"):
        run(body, x, "checked")


def test_arguments_are_left_as_lanes_of_zero_make_them() -> None:
    out, x = np.full(1, 9, np.int32), np.arange(20, dtype=np.int32)
    library = metal.compile(f"{PREAMBLE}kernel void k({ARGUMENTS}) {{{SUM}\n}}", mode="checked")
    with pytest.raises(UndefinedLanesError):
        library.k(out, x, threads=20, group_size=20)
    assert out[0] == 190


def test_each_run_starts_from_the_same_memory() -> None:
    out = np.full(20, 3, np.int32)
    body = "int v = simd_shuffle_down(x[t], 1); out[t] += t < 19 ? v : 0;"
    metal.compile(f"{PREAMBLE}kernel void k({ARGUMENTS}) {{{body}\n}}", mode="checked").k(
        out, np.arange(20, dtype=np.int32), threads=20, group_size=20
    )
    assert out.tolist() == [*range(4, 23), 3]


def test_the_line_is_that_of_an_included_file(tmp_path: Path) -> None:
    (tmp_path / "lanes.metal").write_text("inline int next(int v) {\n  return metal::simd_shuffle_down(v, 1);\n}\n")
    source = f'{PREAMBLE}#include "lanes.metal"\nkernel void k({ARGUMENTS}) {{ out[t] = next(x[t]); }}'
    library = metal.compile(source, mode="checked", include=[tmp_path])
    with pytest.raises(UndefinedLanesError, match=r"lanes\.metal:2\)$"):
        library.k(np.zeros(20, np.int32), np.arange(20, dtype=np.int32), group_size=20)
