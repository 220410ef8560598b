"""The measurements of a family's kernels that a patch's description gives, with their source and device."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ....kernels.verification.accuracy import Accuracy, accuracy_of
from ....kernels.verification.evidence import source_digest
from ....kernels.verification.timing import Timing


@dataclass(frozen=True)
class FamilyEvidence:
    """The measurements of a family's kernels.

    Attributes:
        family: its name.
        source: the digest of its files.
        torch: the version of torch that ran.
        simulated: whether the kernels ran on the simulated device, which computes on the host.
        accuracy: a row for each call and dtype.
        timing: of a real device only: what the simulated one takes says nothing about a GPU.
        opinfo_dtypes: the dtypes in which an OpInfo's first sample ran on mps, by the OpInfo's name.
    """

    family: str
    source: str
    torch: str
    simulated: bool
    accuracy: tuple[Accuracy, ...]
    timing: Timing | None
    opinfo_dtypes: Mapping[str, frozenset[str]]


def measured(family: str, overloads: Sequence[str], opinfos: Sequence[str], *, simulated: bool) -> FamilyEvidence:
    """Run the family's cases and one sample of each OpInfo and dtype. An mps device has to be open.

    `overloads`: those that the family's kernels register. `opinfos`: the names of the OpInfos that test them.
    """
    import torch

    from ....kernels.verification.timing import measure

    timing = None if simulated else measure(family, 2**20)
    supported = {name: _supported(overloads, name) for name in opinfos}
    rows = tuple(accuracy_of(family))
    return FamilyEvidence(family, source_digest(family), torch.__version__, simulated, rows, timing, supported)


def _supported(overloads: Sequence[str], opinfo: str) -> frozenset[str]:
    """The dtypes in which the first sample of an OpInfo runs with the kernels of these overloads."""
    from ....kernels.runtime.registration import use
    from ...operators.opinfos import named, runs_on

    with use(*overloads):
        return frozenset(
            str(dtype).removeprefix("torch.")
            for op in named(opinfo)
            for dtype in op.supported_dtypes("mps")
            if runs_on(op, dtype, "mps")
        )
