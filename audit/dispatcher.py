"""What the dispatcher of the running torch says: a check of the surface, and the overloads outside aten.

The one part of the surface that imports torch, inside its functions. Run it where torch has an mps device: on a Mac
it checks the declarations against what that build registered.
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ..errors import MpsmithError
from .overloads import Dispatch, Overload, Surface
from .reachability import Reachable

_MPS_LINE = re.compile(r"^MPS: (?P<where>.*?) ?\[(?P<kind>[a-z ]+)\]$", re.MULTILINE)

# The words of torch._C._dispatch_dump_table for the MPS entry of an operator.
KERNEL = "kernel"
IMPLICIT = "math kernel"
EXPLICIT = "default backend kernel"
FALLBACK = "backend fallback"

_EXPECTED = {
    Dispatch.NATIVE: KERNEL,
    Dispatch.STRUCTURED_DELEGATE: KERNEL,
    Dispatch.ALWAYS_FALLS_BACK: KERNEL,
    Dispatch.COMPOSITE_IMPLICIT: IMPLICIT,
    Dispatch.COMPOSITE_EXPLICIT: EXPLICIT,
    Dispatch.MISSING: FALLBACK,
    Dispatch.MISSING_EVERYWHERE: FALLBACK,
}


@dataclass(frozen=True)
class Disagreement:
    """An overload for which the dispatcher does not say what the surface says.

    `observed` is the dispatcher's word for its MPS entry, `unregistered` or `no entry`; `where` is where it says that
    the kernel was registered.
    """

    overload: str
    dispatch: Dispatch
    expected: str
    observed: str
    where: str

    def __str__(self) -> str:
        return (
            f"{self.overload}: the surface says {self.dispatch.value} ({self.expected}), "
            f"the dispatcher says {self.observed} ({self.where})"
        )


def mps_entry(dump: str) -> tuple[str, str]:
    """Kind and place of registration in the MPS line of a dispatch table dump; `("no entry", "")` without one."""
    found = _MPS_LINE.search(dump)
    return (found["kind"], found["where"]) if found else ("no entry", "")


def check_against_dispatcher(surface: Surface, dump_table: Callable[[str], str] | None = None) -> list[Disagreement]:
    """Compare every overload with the MPS entry of the running torch's dispatch table.

    `dump_table` gives the table of an overload as text and raises RuntimeError for an unknown one; by default it is
    torch's own. Meaningful only where torch has an mps device: elsewhere no MPS kernel is registered at all.
    """
    dump_table = dump_table or _torch_dump_table()
    disagreements = []
    for overload in surface.overloads:
        expected = _EXPECTED[overload.dispatch]
        try:
            observed, where = mps_entry(dump_table(overload.name))
        except RuntimeError:
            observed, where = "unregistered", ""
        if observed != expected:
            disagreements.append(Disagreement(overload.name, overload.dispatch, expected, observed, where))
    return disagreements


def _torch_dump_table() -> Callable[[str], str]:
    import torch

    dump: Callable[[str], str] = torch._C._dispatch_dump_table
    return dump


def dispatcher_surface(patterns: Sequence[str]) -> tuple[Overload, ...]:
    """Overloads that match shell patterns such as `torchvision::*` or `torchvision::nms`, from the dispatcher.

    For operators outside aten, once their package is imported. A pattern without an overload takes all overloads.
    Raises MpsmithError for a pattern that nothing matches.
    """
    import torch

    names = sorted(torch._C._dispatch_get_all_op_names())
    chosen: dict[str, None] = {}
    for pattern in patterns:
        matching = [name for name in names if _matches(name, pattern)]
        if not matching:
            raise MpsmithError(f"no operator matches {pattern}; import the package that defines it first")
        chosen.update(dict.fromkeys(matching))
    return tuple(_registered_overload(name) for name in chosen)


def _matches(name: str, pattern: str) -> bool:
    return fnmatch.fnmatchcase(name, pattern) or fnmatch.fnmatchcase(name.partition(".")[0], pattern)


def _registered_overload(name: str) -> Overload:
    import torch

    operator, _, overload = name.partition(".")
    namespace, _, base = operator.partition("::")
    entry = getattr(getattr(getattr(torch.ops, namespace), base), overload or "default")
    has = torch._C._dispatch_has_kernel_for_dispatch_key
    dispatch = _registered_dispatch(lambda key: bool(has(name, key)))
    return Overload(
        name=name,
        operator=operator,
        schema=str(entry._schema),
        tags=tuple(sorted(tag.name for tag in entry.tags)),
        has_autograd_formula=bool(has(name, "Autograd") or has(name, "AutogradMPS")),
        dispatch=dispatch,
        declared=dispatch,
        reach=Reachable(),
        sparse=bool(has(name, "SparseMPS")),
        sparse_compressed=bool(has(name, "SparseCsrMPS")),
    )


def _registered_dispatch(has_kernel: Callable[[str], bool]) -> Dispatch:
    for key, dispatch in (
        ("MPS", Dispatch.NATIVE),
        ("CompositeImplicitAutograd", Dispatch.COMPOSITE_IMPLICIT),
        ("CompositeExplicitAutograd", Dispatch.COMPOSITE_EXPLICIT),
        ("CompositeExplicitAutogradNonFunctional", Dispatch.COMPOSITE_EXPLICIT),
        ("CPU", Dispatch.MISSING),
    ):
        if has_kernel(key):
            return dispatch
    return Dispatch.MISSING_EVERYWHERE
