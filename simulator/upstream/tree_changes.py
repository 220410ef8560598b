"""Finds the overloads that a changed tree may compute differently from its base: those of the files that differ."""

from __future__ import annotations

from pathlib import Path

from .manifest import TreeBuild
from .operations import ATEN, KERNELS, NATIVE_FUNCTIONS, OPERATIONS, operation_files
from .sources import wanted_files

_HOST_CODE = (ATEN / "ATen/mps", ATEN / "ATen/native/mps")


def differing_files(base: Path, changed: Path) -> list[Path]:
    """The host-code files, and native_functions.yaml, that differ between the trees, by path below the tree."""
    texts = [
        {place: path.read_bytes() for path in wanted_files(root) if _is_built(place := path.relative_to(root))}
        for root in (base, changed)
    ]
    return sorted(place for place in {*texts[0], *texts[1]} if texts[0].get(place) != texts[1].get(place))


def _is_built(place: Path) -> bool:
    return place == NATIVE_FUNCTIONS or any(place.is_relative_to(folder) for folder in _HOST_CODE)


def touched_overloads(base: TreeBuild, changed: TreeBuild) -> frozenset[str] | None:
    """The overloads, with namespace, of files that differ or whose Metal sources differ; None if any may be affected.

    Any may be if a header, the backend itself or native_functions.yaml differs. Both builds must be from folders.
    """
    roots = Path(base.source), Path(changed.source)
    names: set[str] = set()
    for place in differing_files(*roots):
        if place.parent == OPERATIONS and place.suffix == ".mm":
            names.add(place.stem)
        elif place.parent == KERNELS and place.suffix == ".metal":
            names |= {file.name for root in roots for file in operation_files(root) if place.stem in file.shaders}
        else:
            return None
    files = (file for tree in (base, changed) for file in tree.files if file.name in names)
    return frozenset(f"aten::{overload}" for file in files for overload in file.overloads)
