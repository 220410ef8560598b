"""Out forms of all kernels treat outputs of another dtype or shape as the CPU does."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any

import pytest
import torch

from mpsmith.audit.cases.calls.invocation import arguments_of, out_arguments, overload_of
from mpsmith.audit.cases.calls.recorded_calls import RecordedCalls
from mpsmith.kernels.runtime import catalog, dispatcher
from mpsmith.kernels.verification.device_under_test import registered

# An audit reaches them through `thnn_conv2d` and `slow_conv3d`; the family's cases call them.
UNRECORDED = {"aten::_slow_conv2d_forward.output", "aten::slow_conv3d_forward.output"}
OVERLOADS = sorted(
    kernel.overload
    for kernel in catalog.all_kernels()
    if kernel.applies is None
    and not kernel.sparse  # an override answers some calls only
    and dispatcher.exists(kernel.overload)
    and kernel.overload not in UNRECORDED
    and out_arguments(kernel.overload)
)
DTYPES = (torch.float32, torch.float16, torch.bfloat16, torch.int64, torch.int32, torch.int16, torch.uint8, torch.bool)
CALLS = 2  # of each overload and dtype
# The CPU's kernel does not check the shapes of noise and result, and crashes.
UNCHECKED_ON_CPU = {"aten::rrelu_with_noise.out"}
# The CPU's kernel writes an output as if it had the inputs' dtype, and out of bounds for a narrower one.
DTYPE_UNCHECKED_ON_CPU = {"aten::_compute_linear_combination.out"}


@pytest.fixture(scope="module", autouse=True)
def kernels() -> Iterator[None]:
    """All of them, also where this torch has its own."""
    with contextlib.ExitStack() as stack:
        for family in catalog.families():
            stack.enter_context(registered(f"mpsmith.kernels.{family}.{family}"))
        yield


@cache
def memory() -> RecordedCalls:
    return RecordedCalls.load()


def calls(overload: str) -> Iterator[tuple[tuple[Any, ...], dict[str, Any]]]:
    """Recorded calls that the CPU accepts, with outputs of the right shape."""
    recorded = memory().overloads[overload]
    chosen = [dtype for dtype in ("float32", "float16", "bfloat16", "int64") if dtype in recorded.dtypes]
    for dtype in chosen or recorded.dtypes:
        for call in recorded.accepted(dtype)[:CALLS]:
            args, kwargs = arguments_of(call, dtype)
            with contextlib.suppress(RuntimeError, NotImplementedError, ValueError):
                overload_of(overload)(*args, **kwargs)
                yield args, kwargs


def moved(value: Any, device: str) -> Any:
    if isinstance(value, torch.Tensor):
        return value.to(device)
    return [moved(item, device) for item in value] if isinstance(value, list | tuple) else value


def attempt(
    overload: str, args: Any, kwargs: dict[str, Any], which: str, dtype: torch.dtype, shape: Sequence[int], device: str
) -> tuple[Any, bool]:
    """The type of the error, or the output's shape and dtype; and whether there was a warning of a resize."""
    given = {name: moved(value, device) for name, value in kwargs.items()}
    output = given[which] = torch.zeros(tuple(shape), dtype=dtype, device=device)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            overload_of(overload)(*moved(args, device), **given)
        except Exception as error:
            return type(error), False
    return (output.shape, output.dtype), any("resized" in str(warning.message) for warning in caught)


def test_every_out_form_has_calls() -> None:
    assert len(OVERLOADS) >= 24
    assert all(list(calls(overload)) for overload in OVERLOADS)


@pytest.mark.parametrize("overload", [name for name in OVERLOADS if name not in DTYPE_UNCHECKED_ON_CPU])
def test_output_of_another_dtype(overload: str) -> None:
    for args, kwargs in calls(overload):
        for which in out_arguments(overload):
            for dtype in (*DTYPES, torch.complex64):
                tried = (overload, args, kwargs, which, dtype, kwargs[which].shape)
                expected, _ = attempt(*tried, "cpu")
                actual, _ = attempt(*tried, "mps")
                assert actual == expected, f"{which} of {dtype}, {kwargs[which].dtype} expected"


@pytest.mark.parametrize("overload", [name for name in OVERLOADS if name not in UNCHECKED_ON_CPU])
def test_output_of_another_shape(overload: str, capfd: pytest.CaptureFixture[str]) -> None:
    for args, kwargs in calls(overload):
        for which in out_arguments(overload):
            right = kwargs[which]
            for shape in ((0,), (5, 7, 2), (*right.shape, 1)):
                tried = (overload, args, kwargs, which, right.dtype, shape)
                expected, _ = attempt(*tried, "cpu")
                capfd.readouterr()
                actual, warned = attempt(*tried, "mps")
                # A meta kernel in C++ has no Python caller to warn here.
                warned = warned or "was resized" in capfd.readouterr().err
                assert actual == expected, f"{which} of shape {shape}, {right.shape} expected"
                changed = isinstance(actual, tuple) and tuple(actual[0]) != shape
                assert warned == (changed and 0 not in shape), f"{which} of shape {shape}"
