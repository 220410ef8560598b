"""Every kernel family on the simulated device, judged by the auditor in every layout and several schedules."""

from __future__ import annotations

from itertools import islice

import pytest
import torch

from mpsmith import kernels
from mpsmith.audit.cases.sources.layouts import padded_rows, stepped
from mpsmith.audit.judging.acceptance import judged
from mpsmith.kernels.runtime import catalog
from mpsmith.kernels.verification.source import calls_of, cases_of
from mpsmith.kernels.verification.verify import verify
from mpsmith.simulator import metal
from mpsmith.simulator.fallback_recorders import CounterRecorder

# Native in the installed torch: test_kernels_old_profile.py runs them with the coverage of torch 2.0.1.
NATIVE = ("shrink",)
# The CPU of torch 2.13 has no kernels to compare with: test_stateless_random.py does it by arithmetic.
# torchvision's operator, which test_deformable_convolution.py compares with its formula.
WITHOUT_REFERENCE = ("stateless_random", "deform_conv2d")
FAMILIES = [name for name in catalog.families() if name not in (*NATIVE, *WITHOUT_REFERENCE)]


@pytest.fixture(autouse=True, scope="module")
def metal_on_the_host() -> None:
    metal.install()


@pytest.mark.parametrize("family", FAMILIES)
def test_values_and_gradients_in_every_layout(family: str) -> None:
    with metal.checking("schedules"):
        result = verify(family)
    assert result.cases > 0
    assert not result.failures, "\n".join(map(str, result.failures[:5]))


@pytest.mark.parametrize("family", FAMILIES)
def test_memory_accesses_and_races(family: str) -> None:
    """A few cases of the first dtype, with every load, store and barrier checked."""
    refused, accepted = [], 0
    overloads = [kernel.overload for kernel in catalog.family(family)]
    with metal.checking("checked"), kernels.use(*overloads):
        for call in calls_of(family):
            dtype: torch.dtype = call.dtypes[0]
            strided = cases_of(call, dtype, [padded_rows, stepped])
            chosen = [*islice(call.cases(dtype), 4), *(case for case in strided if case.title)][:10]
            for case in judged(chosen, CounterRecorder(), 0, call.label):
                accepted += case.accepted
                refused += [f"{call.label}: {case.reason}"] if case.refused else []
    assert not refused, "\n".join(refused[:5])
    assert accepted
