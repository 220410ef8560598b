"""The way OpInfo samples are run with pytest: one test a sample, all in one process, the same comparison.

Run by `audit_throughput` as a test file; the operators come from the environment.
"""

import os
from contextlib import suppress
from unittest import SkipTest

import pytest
import torch

from mpsmith.audit.cases.sources.opinfo import OpInfoSource
from mpsmith.audit.judging.judge import judge
from mpsmith.audit.model.case import Case, make_cases, select
from mpsmith.audit.model.selection import Samples
from mpsmith.audit.model.verdicts import CaseVerdict
from mpsmith.audit.releases.surface.profiles import coverage_profile
from mpsmith.simulator.opening import DeviceKind, open_device

torch.set_num_threads(1)
DEVICE = open_device(DeviceKind.AUTO, coverage_profile)
SOURCE = OpInfoSource()


def samples(operators: list[str]) -> list[tuple[str, Case]]:
    found = []
    for key in select([SOURCE], operators, (), Samples.FULL):
        with suppress(SkipTest):  # no samples for this dtype
            cases = make_cases(SOURCE, key, Samples.FULL, 0)
            found += [(f"{key.label}:{position}", case) for position, case in cases.items()]
    return found


CASES = samples(os.environ["BENCHMARK_OPS"].split(","))


@pytest.mark.parametrize(("label", "case"), [pytest.param(*case, id=case[0]) for case in CASES])
def test_sample(label: str, case: Case) -> None:
    outcome = judge(case, DEVICE.recorder, 0, label)
    assert outcome.verdict is not CaseVerdict.CRASH
