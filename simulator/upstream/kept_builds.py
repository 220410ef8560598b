"""Caches builds of trees: if neither a text nor the compiler changed, only the texts are read again."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from ...cache import cache_folder, fingerprint, fingerprint_of_code
from ..clang import installed
from .manifest import TreeBuild, read_manifest, write_manifest
from .operations import require_tree
from .sources import wanted_files

_CODE = ("simulator.upstream", "simulator.objc", "simulator.mpsgraph", "simulator.device.build")


def kept_build(
    root: Path, source: str, kernels: str, torch: str, report: Callable[[str], None]
) -> tuple[Path, TreeBuild]:
    """Build a tree, or find its build; returns the folder with its manifest (`manifest.read_manifest`), and the build.

    Args:
        root: the tree.
        source, kernels, report: as for `whole_tree.build_tree`.
        torch: the installed release.

    Raises:
        UpstreamError: it is not a tree of PyTorch, or lacks a file that every other needs.
        ExtensionError: this machine lacks what a build needs.
    """
    require_tree(root)
    texts = [part for path in wanted_files(root) for part in (str(path.relative_to(root)), path.read_bytes())]
    key = fingerprint(installed().identity, fingerprint_of_code(*_CODE), torch, source, kernels, *texts)
    folder = cache_folder() / "upstream" / "builds" / key
    built = read_manifest(folder)
    if built is None:
        from .whole_tree import build_tree

        built = build_tree(root, source, kernels, report)
        write_manifest(folder, built)
    return folder, built
