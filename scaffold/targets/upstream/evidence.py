"""What a patch's description says that its kernels showed, and on what they showed it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ....kernels.verification.accuracy import Accuracy, accuracy_of
from ....kernels.verification.evidence import source_digest
from ....kernels.verification.timing import Timing


@dataclass(frozen=True)
class FamilyEvidence:
    """What was measured of a family.

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


def measured(family: str, opinfos: tuple[str, ...], *, simulated: bool) -> FamilyEvidence:
    """Run the family's cases and one sample of each OpInfo and dtype. An mps device has to be open."""
    import torch

    from ....kernels.verification.timing import measure

    timing = None if simulated else measure(family, 2**20)
    supported = {name: _supported(family, name) for name in opinfos}
    rows = tuple(accuracy_of(family))
    return FamilyEvidence(family, source_digest(family), torch.__version__, simulated, rows, timing, supported)


def _supported(family: str, opinfo: str) -> frozenset[str]:
    """The dtypes in which the first sample of an OpInfo runs with the family's kernels."""
    from ....kernels.runtime import catalog
    from ....kernels.runtime.registration import use
    from ...operators.opinfos import named, runs_on

    with use(*(kernel.overload for kernel in catalog.family(family))):
        return frozenset(
            str(dtype).removeprefix("torch.")
            for op in named(opinfo)
            for dtype in op.supported_dtypes("mps")
            if runs_on(op, dtype, "mps")
        )
