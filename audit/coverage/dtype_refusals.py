"""The dtypes that native operators of a release refuse on mps, as far as PyTorch's own tests say.

A profile of the simulated device can carry them, so that dtype gaps can be audited where there is no Mac.
"""

from __future__ import annotations

from ..releases import data as release_data
from ..selection import DTYPES
from ..surface import native_functions
from . import ReleaseCoverage, from_data
from .table import DtypesByStage, failures_by_operator

COMPLEX = "complex64"


def refuse_as(release: str | None) -> dict[str, tuple[str, ...]]:
    """Let the simulated device of this process refuse the dtypes that a release refuses, the installed one for None.

    Returns what is refused, by overload. Raises MpsmithError for an unknown release, and where this process has not
    loaded the simulated device.
    """
    from ...simulator.device import refusals

    data = release_data.load()
    dtypes = refused_dtypes(from_data(data, data.index(release or native_functions.installed_release())))
    refusals.refuse(dtypes)
    return dtypes


def refused_dtypes(coverage: ReleaseCoverage) -> dict[str, tuple[str, ...]]:
    """For each native overload (without namespace) the dtypes that its kernel refuses, in the order of DTYPES.

    From the list of unimplemented operators and from the lists of operators without complex numbers. An operator that
    is listed for float32 although it has a kernel fails for some shapes only, so it refuses nothing here. Overloads
    without a kernel are left out: they are missing for every dtype.
    """
    failures = failures_by_operator(coverage)
    refused: dict[str, tuple[str, ...]] = {}
    for operator, overloads in sorted(coverage.by_operator.items()):
        dtypes = _refused(failures.get(operator, {}))
        refused.update({overload.name: dtypes for overload in overloads if dtypes and overload.dispatch.has_kernel})
    return refused


def _refused(expected: DtypesByStage) -> tuple[str, ...]:
    listed = set(expected.get("unimplemented", ()))
    if "float32" in listed or "all" in listed:
        listed = set()
    if COMPLEX in expected.get("forward", ()):
        listed.add(COMPLEX)
    return tuple(dtype for dtype in DTYPES if dtype in listed)
