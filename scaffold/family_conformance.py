"""What a family's kernels have to show when they are not those in Python: the checks behind an extension's tests.

The cases are the family's own, as `mpsmith kernels verify` runs them, and the judge is the auditor's.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import torch

from ..audit.judging.acceptance import judged
from ..audit.model.case import Case, described
from ..kernels.verification.source import calls_of, cases_of, remembered_calls
from .conformance import SEED, device


@dataclass(frozen=True)
class FamilySubject:
    """Kernels under test.

    Attributes:
        family: whose cases they have to pass.
        overloads: those that they answer, as `aten::mode.values`.
    """

    family: str
    overloads: tuple[str, ...]

    def labels(self) -> list[str]:
        """A name for each call and dtype that the overloads answer."""
        return [label for label, _ in self._cases()]

    def check_registered(self, overload: str) -> None:
        """The overload has a kernel on mps."""
        assert torch._C._dispatch_has_kernel_for_dispatch_key(overload, "MPS"), f"{overload} has no kernel on mps"

    def check_cases(self, label: str) -> None:
        """One call in one dtype: in every layout, with special values, in other sizes."""
        for name, cases in self._cases():
            if name == label:
                accepted = self._accepted(cases, label)
                assert accepted, f"{label}: no case could be executed on the CPU, so nothing was compared"

    def check_remembered(self, overload: str) -> None:
        """The calls of an overload that audits remember, out= forms among them, where they know any."""
        for key, cases in remembered_calls(self.family, (overload,)):
            self._accepted(cases, key.label)

    def _cases(self) -> Iterator[tuple[str, Iterable[Case]]]:
        operators = {overload.partition(".")[0] for overload in self.overloads}
        for call in calls_of(self.family):
            if not operators.isdisjoint(call.operators):
                for dtype in call.dtypes:
                    yield f"{call.label}, {str(dtype).removeprefix('torch.')}", cases_of(call, dtype)

    def _accepted(self, cases: Iterable[Case], label: str) -> int:
        """How many were; one that is refused is an error."""
        accepted = 0
        for one in judged(cases, device().recorder, SEED, label):
            assert not one.refused, f"{described(one.case)} {one.position}: {one.reason}"
            accepted += one.accepted
        return accepted
