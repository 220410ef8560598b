"""Faults that need two things at once, in operators that no list names: the rows of the covering arrays find them."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from mpsmith.audit.cases.sources import case_sources
from mpsmith.audit.judging.judge import judge
from mpsmith.audit.model.case import make_cases
from mpsmith.audit.model.selection import Samples
from mpsmith.audit.model.verdicts import CaseVerdict
from mpsmith.simulator.fallback_recorders import CounterRecorder
from support.faulty_kernels import Faulty, faulty_kernel

SOURCES = case_sources(())


def wrong_cases(operator: str, dtypes: tuple[str, ...]) -> list[str]:
    """The inputs of the cases of the source `pairs` that are wrong for an operator."""
    source = SOURCES["pairs"]
    titles = []
    for key in source.groups():
        if key.operator == operator and key.dtype in dtypes and not key.variant:
            for position, case in make_cases(source, key, Samples.DEFAULT, 0).items():
                outcome = judge(case, CounterRecorder(), 0, f"{key.label}:{position}")
                if outcome.verdict is CaseVerdict.WRONG:
                    titles.append(case.title)
    return titles


def in_place_and_nan(kernel: Faulty, self: Tensor) -> Tensor:
    special = self.isnan().cpu()
    out = kernel(self)
    if special.any():
        self.copy_(torch.where(special.to(self.device), torch.zeros_like(self), self))
    return out


def expanded_and_keepdim(kernel: Faulty, self: Tensor, dim: Any = (), keepdim: bool = False) -> Tensor:
    out = kernel(self, dim, keepdim)
    return out + 1 if keepdim and self.dim() and self.stride(0) == 0 and self.shape[0] > 1 else out


FAULTS = [
    ("lgamma", "lgamma_", in_place_and_nan, ("float32", "float16", "bfloat16"), "nan"),
    ("amin", "amin", expanded_and_keepdim, ("float32", "float16", "bfloat16"), "expanded"),
]


@pytest.mark.parametrize(("operator", "overload", "faulty", "dtypes", "shown_by"), FAULTS)
def test_a_fault_of_two_factors_is_found_and_a_clean_device_is_not_blamed(
    operator: str, overload: str, faulty: Faulty, dtypes: tuple[str, ...], shown_by: str
) -> None:
    assert wrong_cases(operator, dtypes) == []
    with faulty_kernel(overload, faulty):
        titles = wrong_cases(operator, dtypes)
    assert any(shown_by in title for title in titles), titles
    assert wrong_cases(operator, dtypes) == []
