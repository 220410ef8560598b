"""Compares the kernels of two Metal libraries: added, removed, and those with other code.

Code is compared by the hash of a kernel's module. It is the same in two releases as long as source, options and
compiler are: many kernels keep theirs for several releases, and a new compiler changes them all.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ....simulator.air.container import LibraryFunction
from .kernel_families import KernelFamilies
from .metal_dtypes import dtypes_by_operator


@dataclass(frozen=True)
class FamilyDiff:
    """The kernels of one family by their change, in the order of their library."""

    family: str
    came: tuple[str, ...]
    went: tuple[str, ...]
    changed: tuple[str, ...]
    same: tuple[str, ...]


@dataclass(frozen=True)
class KernelDiff:
    """All families of two libraries, by name, and the dtypes of operators that only one of the two has kernels for."""

    families: tuple[FamilyDiff, ...]
    dtypes_came: Mapping[str, tuple[str, ...]]
    dtypes_went: Mapping[str, tuple[str, ...]]

    def names(self, kind: str) -> tuple[str, ...]:
        """All kernels that `came`, `went`, `changed` or stayed the `same`."""
        return tuple(name for family in self.families for name in getattr(family, kind))


def compare_kernels(
    before: Sequence[LibraryFunction], after: Sequence[LibraryFunction], families: KernelFamilies
) -> KernelDiff:
    """The change of every kernel of either library."""
    old, new = ({function.name: function.sha256 for function in functions} for functions in (before, after))
    sorted_out: dict[str, dict[str, list[str]]] = {}
    for name in {**old, **new}:
        kinds = sorted_out.setdefault(families.family(name), {})
        kinds.setdefault(_kind(old.get(name), new.get(name)), []).append(name)
    old_dtypes, new_dtypes = (dtypes_by_operator(families.operators, names) for names in (old, new))
    return KernelDiff(
        tuple(
            FamilyDiff(family, *(tuple(kinds.get(kind, ())) for kind in ("came", "went", "changed", "same")))
            for family, kinds in sorted(sorted_out.items())
        ),
        _beyond(new_dtypes, old_dtypes),
        _beyond(old_dtypes, new_dtypes),
    )


def _kind(old: str | None, new: str | None) -> str:
    if old is None:
        return "came"
    if new is None:
        return "went"
    return "same" if old == new else "changed"


def _beyond(more: Mapping[str, Sequence[str]], less: Mapping[str, Sequence[str]]) -> dict[str, tuple[str, ...]]:
    """The dtypes of each operator in `more` that `less` does not have."""
    further = {
        operator: tuple(dtype for dtype in dtypes if dtype not in less.get(operator, ()))
        for operator, dtypes in more.items()
    }
    return {operator: dtypes for operator, dtypes in further.items() if dtypes}
