"""Shipped kernels and their changes as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from .kernel_arguments import ArgumentsDiff, signature_of
from .kernel_diff import KernelDiff
from .kernel_families import KernelFamilies
from .shipped import ShippedLibrary


def library_json(library: ShippedLibrary, names: Sequence[str], families: KernelFamilies) -> dict[str, Any]:
    """A library with those of its kernels that are named."""
    return {**_origin(library), "kernels": [kernel_json(library, name, families) for name in names]}


def kernel_json(library: ShippedLibrary, name: str, families: KernelFamilies) -> dict[str, Any]:
    """One kernel of a library, from the list of the library."""
    function = library.file.function(name)
    family = families.family(name)
    return {
        "name": name,
        "family": family,
        "operators": families.operators_of(family),
        "bytes": function.size,
        "sha256": function.sha256,
        "air": str(function.air),
        "metal": str(function.metal),
    }


def signature_json(library: ShippedLibrary, name: str, families: KernelFamilies) -> dict[str, Any]:
    """One kernel with its arguments, read from its code."""
    signature = asdict(signature_of(library.file, name))
    return {**_origin(library), **kernel_json(library, name, families), **signature}


def diff_json(
    before: ShippedLibrary, after: ShippedLibrary, changes: KernelDiff, arguments: Sequence[ArgumentsDiff] | None
) -> dict[str, Any]:
    """The changes from one library to another; those of arguments where they were compared."""
    return {
        "before": _origin(before),
        "after": _origin(after),
        "families": [asdict(family) for family in changes.families],
        "dtypes_came": dict(changes.dtypes_came),
        "dtypes_went": dict(changes.dtypes_went),
        "arguments": None if arguments is None else [asdict(each) for each in arguments],
    }


def _origin(library: ShippedLibrary) -> dict[str, Any]:
    header = library.file.header
    return {
        "source": library.source,
        "release": library.release,
        "library": library.section,
        "libraries": dict(library.sections),
        "container": str(header.container),
        "macos": str(header.macos),
    }
