"""Every family of kernels on the simulated device against float64, in every layout, under several schedules."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from mpsmith import kernels
from mpsmith.kernels.runtime import catalog
from mpsmith.kernels.verification.checks import cases, run
from mpsmith.kernels.verification.evidence import verify
from mpsmith.kernels.verification.subjects import SUBJECTS
from mpsmith.simulator import metal
from mpsmith.simulator.device import loading as device

# Native in the installed torch: test_kernels_old_profile.py runs them with the coverage of torch 2.0.1.
NATIVE = ("shrink",)
FAMILIES = [name for name in catalog.families() if name not in NATIVE]


@pytest.fixture(scope="module", autouse=True)
def registered() -> Iterator[tuple[str, ...]]:
    metal.install()
    with kernels.use(*(kernel.overload for kernel in catalog.all_kernels())) as names:
        yield names


@pytest.mark.parametrize("family", FAMILIES)
def test_values_and_gradients_in_every_layout(family: str) -> None:
    device.drain_fallbacks()
    with metal.checking("schedules"):
        result = verify(family)
    assert result.cases > 0
    assert not result.failures, "\n".join(map(str, result.failures[:5]))
    assert device.drain_fallbacks() == []


@pytest.mark.parametrize("family", FAMILIES)
def test_no_stray_access_and_no_race(family: str) -> None:
    """A few cases of the first dtype, with every load, store and barrier checked."""
    failures = []
    with metal.checking("checked"):
        for subject in SUBJECTS[family]:
            for layout in ("contiguous", "sliced"):
                chosen = list(cases(subject, [layout], subject.dtypes[:1]))[:4]
                failures += [failure for case in chosen if (failure := run(case))]
    assert not failures, "\n".join(map(str, failures[:5]))


def test_a_wrong_kernel_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The checks can fail: heaviside with the operands exchanged."""
    from mpsmith.kernels.heaviside import heaviside

    right = heaviside.elementwise

    def exchanged(shader, name, outputs, inputs):  # type: ignore[no-untyped-def]
        right(shader, name, outputs, inputs[::-1])

    monkeypatch.setattr(heaviside, "elementwise", exchanged)
    result = verify("heaviside", ["contiguous"])
    assert result.failures
    assert not result.passed
