"""Every function of the tables of the Metal specification, with every type and number of elements that it takes."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from mpsmith.simulator import metal
from support.metal_specification import FLOAT_ROWS, FLOATS, INTEGER_ROWS, INTEGERS, SAMPLES, Call, calls_of, program
from support.needs import needs_metal_on_host

needs_metal_on_host()

ROWS = {**dict.fromkeys(INTEGERS, INTEGER_ROWS), **dict.fromkeys(FLOATS, FLOAT_ROWS)}
# Roundings of the type: the host computes half in float, and powers amplify a rounding of their argument.
TOLERANCE = {"float": 2e-6, "half": 2e-3}


def executed(calls: list[Call]) -> np.ndarray[Any, np.dtype[Any]]:
    """The results by thread."""
    dtype = {"float": np.float32, "half": np.float16, "ulong": np.uint64}.get(calls[0].type, np.int64)
    size = sum(call.outputs * call.width for call in calls)
    out = np.zeros((SAMPLES, size), dtype)
    metal.compile(program(calls)).k(out, threads=SAMPLES)
    return out


def expected(call: Call, thread: int, element: int) -> tuple[Any, ...]:
    """The references of an element: the result, and what is set."""
    inputs = call.inputs(thread, element)
    if call.type in INTEGERS:
        inputs = [call.type, *map(int, inputs)]
    result = call.row.reference(*inputs)
    if call.row.name in ("modf", "sincos", "frexp"):
        return tuple(result)
    return (result,)


@pytest.mark.parametrize("t", [*INTEGERS, *FLOATS])
def test_functions_of_the_tables(t: str) -> None:
    calls = calls_of(ROWS[t], t)
    out = executed(calls)
    wrong = []
    at = 0
    for call in calls:
        for thread in range(SAMPLES):
            for element in range(call.width):
                for number, value in enumerate(expected(call, thread, element)):
                    actual = out[thread, at + number * call.width + element].item()
                    if not agrees(actual, value, t):
                        wrong.append((call.row.name, call.width, call.inputs(thread, element), actual, value))
        at += call.outputs * call.width
    assert wrong == []
    assert at == out.shape[1]


def agrees(actual: float, value: float | None, t: str) -> bool:
    """Whether a result agrees with its reference; None is undefined."""
    if value is None:
        return True
    if t in INTEGERS:
        return actual == value
    return math.isclose(actual, value, rel_tol=TOLERANCE[t], abs_tol=TOLERANCE[t])


def test_count_of_the_table() -> None:
    assert sum(len(calls_of(rows, t)) for t, rows in ROWS.items()) == 1272
