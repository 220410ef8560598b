"""Which overloads get a kernel: the coverage profile's, and the documented exceptions."""

from __future__ import annotations

import dataclasses

import torch

from mpsmith.simulator.device import kernel_plan
from mpsmith.simulator.device.coverage_profile import CoverageProfile

NOTHING = CoverageProfile("0.0", frozenset(), frozenset(), frozenset())


def registered(key: str) -> set[str]:
    """The aten overloads with a kernel under a dispatch key."""
    has_kernel = torch._C._dispatch_has_kernel_for_dispatch_key
    names = [name for name in torch._C._dispatch_get_all_op_names() if name.startswith("aten::")]
    return {name.removeprefix("aten::") for name in names if has_kernel(name, key)}


def test_the_device_has_exactly_the_kernels_of_its_profile(simulated_device: CoverageProfile) -> None:
    own = set(kernel_plan.ALWAYS_NATIVE) | set(kernel_plan.IMPLEMENTED_IN_CPP) | set(kernel_plan.REFUSING)
    own |= {"convolution_overrideable", "convolution_backward_overrideable", "scaled_dot_product_attention"}
    own |= {"lstm.input"}  # calls _lstm_mps, as a composite overload does on a Mac
    own |= {"linalg_lu_solve.out"}  # torch's own, a python kernel that torch._refs registers
    expected = simulated_device.native | simulated_device.always_fallback
    mps = registered("MPS")
    assert expected - mps == set(kernel_plan.NEVER_NATIVE)
    assert mps - expected <= own
    assert registered("SparseMPS") == simulated_device.sparse


def test_an_empty_profile_still_creates_fills_views_and_copies_tensors() -> None:
    plan = kernel_plan.plan(NOTHING)
    assert set(plan.native) == set(kernel_plan.ALWAYS_NATIVE)
    assert plan.sparse == plan.always_fallback == []


def test_every_exception_gives_its_reason_and_exists_in_this_torch() -> None:
    exceptions = {**kernel_plan.ALWAYS_NATIVE, **kernel_plan.NEVER_NATIVE}
    operators = {name.removeprefix("aten::") for name in torch._C._dispatch_get_all_op_names()}
    assert all(len(reason) > 20 for reason in exceptions.values())
    assert set(exceptions) <= operators


def test_unknown_overloads_are_left_out() -> None:
    profile = dataclasses.replace(NOTHING, native=frozenset({"of_the_future.out"}), sparse=frozenset({"nor.this"}))
    assert "of_the_future.out" not in kernel_plan.plan(profile).native
    assert kernel_plan.plan(profile).sparse == []


def test_composite_operators_of_this_torch_stay_composite() -> None:
    """2.0.1 had an mps kernel for argsort.stable; today it is a sort, and a kernel would cut off its gradient."""
    profile = dataclasses.replace(NOTHING, native=frozenset({"argsort.stable", "softshrink"}))
    native = kernel_plan.plan(profile).native
    assert "argsort.stable" not in native
    assert "softshrink" in native


def test_native_goes_before_always_falls_back() -> None:
    profile = dataclasses.replace(NOTHING, always_fallback=frozenset({"copy_", "embedding_renorm_"}))
    assert kernel_plan.plan(profile).always_fallback == ["embedding_renorm_"]
