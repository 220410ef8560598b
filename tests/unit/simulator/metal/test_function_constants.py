"""Function constants: values that host code gives a program before its kernels are built."""

from __future__ import annotations

import pytest

from mpsmith.simulator.errors import MetalRuntimeError
from mpsmith.simulator.metal.function_constants import Constant, specialized

PROGRAM = """\
constant int step [[function_constant(0)]];
constant bool scaled
    [[function_constant(1)]];
constant bool has_scale = is_function_constant_defined(scaled);
kernel void k(device int* o [[buffer(0)]], uint i [[thread_position_in_grid]]) { o[i] = step; }
"""


def test_constants_are_replaced_by_their_values() -> None:
    text = specialized(PROGRAM, [Constant(0, "", "int(5)"), Constant(-1, "scaled", "true")])
    assert "constant int step = int(5);" in text
    assert "constant bool has_scale = true;" in text
    assert text.count("\n") == PROGRAM.count("\n"), "messages name lines of the source"


def test_function_constants_without_a_value_stay_undefined() -> None:
    text = specialized(PROGRAM, [Constant(0, "", "int(5)")])
    assert "[[function_constant(1)]]" in text
    assert "is_function_constant_defined(scaled)" in text
    assert specialized(PROGRAM, []) == PROGRAM


def test_rejects_an_index_that_is_not_a_number() -> None:
    source = "constant int step [[function_constant(BASE + 1)]];"
    with pytest.raises(MetalRuntimeError, match=r"'step' has the index BASE \+ 1"):
        specialized(source, [Constant(1, "", "int(5)")])
    assert specialized(source, [Constant(-1, "step", "int(5)")]) == "constant int step = int(5);"
