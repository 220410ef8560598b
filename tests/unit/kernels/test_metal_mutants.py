"""Mistakes that are put into kernels: what each does to source and launches, and the table of who finds it."""

from __future__ import annotations

import pytest

from mpsmith.kernels.verification.mutants import MUTANTS, Mutant, MutantOutcome, table

SOURCE = """
kernel void k(device T* out, device const T* self, constant long& n, uint i [[thread_position_in_grid]]) {
  threadgroup float scratch[64];
  scratch[i] = self[i];
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (scratch[0] == 1) out[i] = scratch[63 - i] + self[i + 2];
}
"""


def named(name: str) -> Mutant:
    return next(mutant for mutant in MUTANTS if mutant.name == name)


class TestMutants:
    @pytest.mark.parametrize(
        ("name", "old", "new"),
        [
            ("barriers are missing", "threadgroup_barrier(mem_flags::mem_threadgroup);", ";"),
            ("barriers order the other memory", "mem_flags::mem_threadgroup", "mem_flags::mem_device"),
            ("barriers of a SIMD group alone", "  threadgroup_barrier", "  simdgroup_barrier"),
            (
                "one thread of a SIMD group skips the barriers",
                "  threadgroup_barrier",
                "  if (!simd_is_first()) threadgroup_barrier",
            ),
            ("threadgroup memory is not written", "scratch[i] = self[i];", ";"),
            ("stores one element too far", "out[i] =", "out[(i) + 1] ="),
        ],
    )
    def test_one_thing_is_changed(self, name: str, old: str, new: str) -> None:
        assert SOURCE.count(old) == 1
        assert named(name).source(SOURCE) == SOURCE.replace(old, new)

    def test_loads_are_moved_and_stores_are_not(self) -> None:
        found = named("loads one element too far").source(SOURCE)
        assert "= self[(i) + 1];" in found
        assert "self[(i + 2) + 1]" in found
        assert "out[i] =" in found

    def test_launches(self) -> None:
        assert named("half tensors bound to float*").kernel("sum_half") == "sum_float"
        assert named("half tensors bound to float*").kernel("halved_int") == "halved_int"
        assert named("integers passed as floats").launch([1, [2, 3], 0.5, True, "x"], {}) == (
            [1.0, [2.0, 3.0], 0.5, True, "x"],
            {},
        )
        cast = {"arg_casts": "int32"}
        assert named("integers passed as floats").launch([1], cast) == ([1], cast)
        assert named("the last argument is dropped").launch([1, 2], {"threads": 1}) == ([1], {"threads": 1})


def test_the_table_tells_what_no_mode_finds_and_where_there_is_no_place() -> None:
    text = table(
        [
            MutantOutcome("a", "mode", ("checked", "schedules"), "race", True),
            MutantOutcome("a", "pdist", (), "", False),
            MutantOutcome("b", "mode", (), "", True),
            MutantOutcome("b", "pdist", ("schedules",), "differs", True),
        ]
    )
    assert "| a | both | - |" in text
    assert "| b | **not found** | schedules |" in text
    assert text.endswith("2 of 3 mutants are found: 1 in checked, 2 in schedules.\n")
