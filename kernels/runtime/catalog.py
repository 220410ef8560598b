"""The kernels of this package. A folder of `mpsmith.kernels` with a module of the same name is a family.

`kernels/mode/mode.py` has the table of the family's functions; they launch the kernels in `mode.metal`.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import torch

from ...errors import MpsmithError, near
from ...registry.kernel_index import KernelEntry, kernel_entries

_PACKAGE = __package__.rpartition(".")[0]
_FOLDER = Path(__file__).parent.parent
_FINISHED = frozenset({"implemented", "verified", "upstreamed"})


class UnknownKernelError(MpsmithError):
    """A name for which this package has no kernel."""


@dataclass(frozen=True)
class Kernel:
    """A Python function that implements an overload on mps with Metal kernels.

    Attributes:
        overload: its full name, `aten::mode.values`.
        family: the folder that holds the function, `mode`.
        function: has the parameters, defaults and results of the overload's schema.
        applies: for an override, the dtypes of the first argument for which it replaces torch's kernel, or a predicate
            on the call's arguments; None for an operator that has no kernel in torch.
        on_cpu: for a kernel that newer releases have, too: a predicate on the call's arguments, whether torch's own
            kernel computes the call on the CPU. Only these calls are replaced there.
        derived: whether torch derives the overload from another one in releases that lack a kernel for it.
        sparse: whether it takes sparse (COO) tensors, for which the dispatcher has a separate key.
        composite: whether it calls other operators, and so gets its gradient from them.
        extern: whether compiled code calls it, because Inductor's own code for the operator fails.
        fakes: overloads without a usable meta kernel in torch, and fake kernels for them.
    """

    overload: str
    family: str
    function: Callable[..., Any]
    applies: Callable[..., bool] | frozenset[torch.dtype] | None = None
    on_cpu: Callable[..., bool] | None = None
    derived: bool = False
    sparse: bool = False
    composite: bool = False
    extern: bool = False
    fakes: tuple[tuple[str, Callable[..., Any]], ...] = ()

    @property
    def key(self) -> str:
        """The dispatch key that it is registered under."""
        return "SparseMPS" if self.sparse else "MPS"

    @property
    def operator(self) -> str:
        """The operator's name without the overload, `aten::mode`."""
        return self.overload.split(".")[0]

    @property
    def library(self) -> str:
        """The library that defines the operator: `aten` for torch's own, else the namespace of another library."""
        return self.overload.split("::")[0]


@cache
def families() -> tuple[str, ...]:
    """The names of all families, sorted."""
    return tuple(sorted(module.stem for module in _FOLDER.glob("*/*.py") if module.stem == module.parent.name))


def folder_of(name: str) -> Path:
    """The folder of a family. Raises UnknownKernelError for an unknown name."""
    if name not in families():
        raise UnknownKernelError(f"there is no family {name} in mpsmith.kernels{near(name, families())}")
    return _FOLDER / name


def part_of(name: str, part: str) -> ModuleType | None:
    """The module `part` in the folder of a family, such as its cases, or None if there is none.

    Raises UnknownKernelError for an unknown name.
    """
    if not (folder_of(name) / f"{part}.py").is_file():
        return None
    return importlib.import_module(f"{_PACKAGE}.{name}.{part}")


@cache
def family(name: str) -> tuple[Kernel, ...]:
    """The kernels of one family, in the order of its table.

    A module's KERNELS has rows of an overload and its function. OVERRIDES, if present, has rows of an overload that
    torch has a kernel for, the function, and `applies`. ON_CPU has rows of an overload, the function, and `on_cpu`; an
    overload that is not in KERNELS, too, is `derived`. SPARSE has rows for sparse tensors. COMPOSITES has rows of an
    overload that is composite on other devices, and an equivalent function. EXTERN names operators that compiled code
    calls. FAKES has rows of an overload and its fake kernel.
    Raises UnknownKernelError for an unknown name.
    """
    module = importlib.import_module(f"{_PACKAGE}.{folder_of(name).name}.{name}")
    on_cpu = {overload: (function, goes) for overload, function, goes in getattr(module, "ON_CPU", ())}
    rows = tuple(
        Kernel(overload, name, function, on_cpu=on_cpu.pop(overload, (None, None))[1])
        for overload, function in module.KERNELS
    )
    rows += tuple(
        Kernel(overload, name, function, on_cpu=goes, derived=True) for overload, (function, goes) in on_cpu.items()
    )
    overrides = getattr(module, "OVERRIDES", ())
    rows += tuple(Kernel(overload, name, function, applies) for overload, function, applies in overrides)
    rows += tuple(Kernel(overload, name, function, sparse=True) for overload, function in getattr(module, "SPARSE", ()))
    composites = getattr(module, "COMPOSITES", ())
    rows += tuple(Kernel(overload, name, function, composite=True) for overload, function in composites)
    extern, fakes = frozenset(getattr(module, "EXTERN", ())), tuple(getattr(module, "FAKES", ()))
    return tuple(replace(kernel, extern=kernel.operator in extern, fakes=fakes) for kernel in rows)


def overloads(name: str) -> tuple[str, ...]:
    """The overloads that a family implements. Raises UnknownKernelError for an unknown name."""
    return tuple(kernel.overload for kernel in family(name))


def overridden(name: str) -> frozenset[str]:
    """The operators of a family of which some calls are replaced. Raises UnknownKernelError for an unknown name."""
    return frozenset(kernel.operator for kernel in family(name) if kernel.applies is not None)


def all_kernels() -> tuple[Kernel, ...]:
    """Every kernel of every family."""
    return tuple(kernel for name in families() for kernel in family(name))


def overrides() -> tuple[Kernel, ...]:
    """The kernels that replace torch's own kernel for some calls."""
    return tuple(kernel for kernel in all_kernels() if kernel.applies is not None)


def of_other_libraries() -> tuple[Kernel, ...]:
    """The kernels of operators that another library defines, such as torchvision; the registry has none of them."""
    return tuple(kernel for kernel in all_kernels() if kernel.library != "aten")


def finished_entries() -> tuple[KernelEntry, ...]:
    """The registry's entries that are implemented, verified or upstreamed; this imports no family.

    Raises RegistryError when the registry cannot be read, UnknownKernelError when it names an unknown family.
    """
    entries = tuple(entry for entry in kernel_entries().values() if entry.status in _FINISHED)
    for entry in entries:
        folder_of(entry.kernel)
    return entries


def finished() -> tuple[Kernel, ...]:
    """The kernels of the operators that are implemented, verified or upstreamed in the registry.

    Raises what `finished_entries` raises.
    """
    entries = finished_entries()
    operators = {(entry.kernel, entry.operator) for entry in entries}
    return tuple(
        kernel
        for name in sorted({entry.kernel for entry in entries})
        for kernel in family(name)
        if (name, kernel.operator) in operators
    )


def named(names: Iterable[str]) -> tuple[Kernel, ...]:
    """The kernels of operators (`aten::mode`, `mode`), of overloads (`aten::mode.values`) or of families (`eig`).

    Raises UnknownKernelError for a name without a kernel.
    """
    kernels = all_kernels()
    wanted: dict[str, Kernel] = {}
    for name in names:
        full = name if "::" in name else f"aten::{name}"
        fitting = [kernel for kernel in kernels if full in (kernel.overload, kernel.operator)]
        fitting = fitting or [kernel for kernel in kernels if name == kernel.family]
        if not fitting:
            raise UnknownKernelError(f"mpsmith has no kernel for {full}{near(full, _names(kernels))}")
        wanted |= {kernel.overload: kernel for kernel in fitting}
    return tuple(wanted.values())


def _names(kernels: Sequence[Kernel]) -> set[str]:
    return {kernel.operator for kernel in kernels} | {kernel.overload for kernel in kernels}
