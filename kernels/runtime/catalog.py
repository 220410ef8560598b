"""The kernels of this package: every plain module in `mpsmith.kernels` is a family with a table of its functions."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from ...errors import MpsmithError
from ...registry.kernel_index import kernel_entries
from ...registry.problems import near

_PACKAGE = __package__.rpartition(".")[0]
_FOLDER = Path(__file__).parent.parent
_FINISHED = frozenset({"implemented", "verified", "upstreamed"})


class UnknownKernelError(MpsmithError):
    """A name for which this package has no kernel."""


@dataclass(frozen=True)
class Kernel:
    """A Python function that replaces an overload on mps by launching Metal kernels.

    Attributes:
        overload: its full name, `aten::mode.values`.
        family: the module that holds the function, `mode`.
        function: takes and returns what the overload's schema says, with the same defaults.
        applies: for an operator that torch has a kernel for: whether this function answers a call instead of it, from
            the call's arguments; None where it answers all calls of an operator that has none.
    """

    overload: str
    family: str
    function: Callable[..., Any]
    applies: Callable[..., bool] | None = None

    @property
    def operator(self) -> str:
        """The operator's name without the overload, `aten::mode`."""
        return self.overload.split(".")[0]


@cache
def families() -> tuple[str, ...]:
    """The names of all families, sorted."""
    return tuple(sorted(m.name for m in pkgutil.iter_modules([str(_FOLDER)]) if not m.ispkg))


@cache
def family(name: str) -> tuple[Kernel, ...]:
    """The kernels of one family, in the order of its table.

    A module's KERNELS has rows of an overload and its function. OVERRIDES, where there is one, has rows of an overload
    that torch has a kernel for, the function, and `applies`.
    Raises UnknownKernelError for a name that is no family.
    """
    if name not in families():
        raise UnknownKernelError(f"there is no module {name} in mpsmith.kernels{near(name, families())}")
    module = importlib.import_module(f"{_PACKAGE}.{name}")
    rows = tuple(Kernel(overload, name, function) for overload, function in module.KERNELS)
    overrides = getattr(module, "OVERRIDES", ())
    return rows + tuple(Kernel(overload, name, function, applies) for overload, function, applies in overrides)


def all_kernels() -> tuple[Kernel, ...]:
    """Every kernel of every family."""
    return tuple(kernel for name in families() for kernel in family(name))


def finished() -> tuple[Kernel, ...]:
    """The kernels of the operators that the registry calls implemented, verified or upstreamed.

    Raises RegistryError when the registry cannot be read, UnknownKernelError when it names a module that is not there.
    """
    entries = [entry for entry in kernel_entries().values() if entry.status in _FINISHED]
    operators = {(entry.kernel, entry.operator) for entry in entries}
    return tuple(
        kernel
        for name in sorted({entry.kernel for entry in entries})
        for kernel in family(name)
        if (name, kernel.operator) in operators
    )


def named(names: Iterable[str]) -> tuple[Kernel, ...]:
    """The kernels of operators (`aten::mode`, `mode`) or of single overloads (`aten::mode.values`), finished or not.

    Raises UnknownKernelError for a name without a kernel.
    """
    known = all_kernels()
    chosen: dict[str, Kernel] = {}
    for name in names:
        full = name if "::" in name else f"aten::{name}"
        fitting = [kernel for kernel in known if full in (kernel.overload, kernel.operator)]
        if not fitting:
            raise UnknownKernelError(f"mpsmith has no kernel for {full}{near(full, _names(known))}")
        chosen |= {kernel.overload: kernel for kernel in fitting}
    return tuple(chosen.values())


def _names(kernels: Sequence[Kernel]) -> set[str]:
    return {kernel.operator for kernel in kernels} | {kernel.overload for kernel in kernels}
