"""Overrides, and kernels for calls that torch's own send to the CPU, are registered by default."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from mpsmith import kernels
from mpsmith.kernels.runtime import catalog, dispatcher, registration
from mpsmith.kernels.runtime.registered_kernel import KernelRegistration

OVERRIDDEN = {kernel.overload for kernel in catalog.overrides()}
# Torch has these, but computes some of their calls on the CPU: no opt-in.
ON_CPU = {kernel.overload for kernel in catalog.all_kernels() if kernel.on_cpu is not None}


class SilentLibrary:
    """Registers nothing."""

    def __init__(self, namespace: str, kind: str) -> None:
        pass

    def impl(self, name: str, function: Any, key: str, **options: Any) -> None:
        pass

    def _destroy(self) -> None:
        pass


@pytest.fixture(autouse=True)
def native_torch(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A torch with an mps device that has a kernel for every operator, which are not called."""
    monkeypatch.setattr(torch.library, "Library", SilentLibrary)
    original = SimpleNamespace(call_boxed=None)
    monkeypatch.setattr(torch.library, "get_kernel", lambda overload, key: original)
    monkeypatch.setattr(registration, "_registered", {})
    monkeypatch.setattr(registration, "_scopes", [{}])
    monkeypatch.setattr(dispatcher, "exists", lambda overload: True)
    monkeypatch.setattr(dispatcher, "mps_is_available", lambda: True)
    monkeypatch.setattr(dispatcher, "has_mps_kernel", lambda overload, key: True)
    yield
    registration.disable()


def test_all_are_registered_by_default() -> None:
    assert {"aten::_adaptive_avg_pool2d", "aten::linalg_lu_solve.out"} <= OVERRIDDEN
    assert {"aten::_linalg_eigh", "aten::_linalg_svd"} <= ON_CPU
    assert ON_CPU.isdisjoint(OVERRIDDEN)
    assert set(kernels.enable()) == ON_CPU | OVERRIDDEN
    assert set(kernels.disable("overrides")) == OVERRIDDEN
    assert set(kernels.registered()) == ON_CPU
    assert set(kernels.enable("overrides")) == OVERRIDDEN


def test_names_beside_the_word() -> None:
    assert set(kernels.enable("mode", "linalg_lu_solve", "overrides")) == OVERRIDDEN


@pytest.mark.parametrize(("value", "expected"), [("mode,overrides", OVERRIDDEN), ("", ON_CPU | OVERRIDDEN)])
def test_environment_variable(value: str, expected: set[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MPSMITH_KERNELS", value)
    registration.enable_from_environment()
    assert set(kernels.registered()) == expected


@pytest.mark.parametrize(("dtype", "expected"), [(torch.complex64, "ours"), (torch.float32, "torch's")])
def test_a_set_of_dtypes_decides_by_the_first_argument(
    dtype: torch.dtype, expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    registered = {}
    monkeypatch.setattr(
        SilentLibrary, "impl", lambda self, name, function, *rest, **options: registered.update({name: function})
    )
    monkeypatch.setattr(
        torch.library, "get_kernel", lambda *names: SimpleNamespace(call_boxed=lambda *_, **__: "torch's")
    )
    kernel = catalog.Kernel("aten::solver", "family", lambda *_, **__: "ours", frozenset({torch.complex64}))
    KernelRegistration.of(kernel)
    assert registered["solver"]("keyset", torch.ones(1, dtype=dtype), 2, upper=True) == expected
