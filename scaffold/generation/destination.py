"""The folder of a scaffold, and the manifest that it holds already."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ...cache import PACKAGE, is_checkout
from ..errors import ScaffoldError
from ..manifest import NAME, Manifest, read_manifest
from ..operators.model import OperatorModel
from ..targets import KernelTarget


@dataclass(frozen=True)
class Destination:
    """A folder, the path of its manifest, and the manifest of the scaffold that it holds, if any."""

    folder: Path
    manifest_path: Path
    manifest: Manifest | None

    @property
    def in_package(self) -> bool:
        """Whether it is mpsmith's own package."""
        return self.folder == PACKAGE

    def text_of(self, path: str) -> str | None:
        """The text of a file by its path below the folder; None when there is none."""
        file = self.folder / path
        return file.read_text("utf-8") if file.is_file() else None

    def require_own(self, operator: OperatorModel, target: KernelTarget) -> None:
        """Raise ScaffoldError when the folder holds anything but a scaffold of this operator for this target."""
        if self.in_package:
            return
        folder, there = self.folder, self.manifest
        if folder.exists() and not folder.is_dir():
            raise ScaffoldError(f"{folder} is a file; choose another folder with --out")
        if there is None and folder.is_dir() and any(folder.iterdir()):
            raise ScaffoldError(
                f"{folder} is not empty and holds no scaffold; choose another folder with --out, or --force"
            )
        if there and (there.operator, there.target) != (operator.full_name, target.value):
            raise ScaffoldError(
                f"{folder} holds the scaffold of {there.operator} for {there.target}; choose another folder with --out"
            )


def folder_as_destination(folder: Path, manifest_name: str = NAME) -> Destination:
    """A folder with its manifest. Raises ScaffoldError when its manifest is damaged."""
    path = folder / manifest_name
    return Destination(folder, path, read_manifest(path) if folder.is_dir() else None)


def destination_of(operator: OperatorModel, target: KernelTarget, out: Path | None) -> Destination:
    """The destination for the scaffold of an operator; `out` is the user's choice.

    In a clone, shaders go into mpsmith's own package, unless a finished family has that folder, and other targets into
    `work/`, which git ignores; elsewhere a scaffold goes into a new folder in the current one.
    """
    if out is None and is_checkout() and target is KernelTarget.SHADER:
        package = folder_as_destination(PACKAGE, f"kernels/.scaffold/{operator.stem}.json")
        if package.manifest or not (PACKAGE / "kernels" / operator.stem).exists():
            return package
    return destination_for(f"{operator.stem}_{target.value}", out)


def destination_for(name: str, out: Path | None = None) -> Destination:
    """`out`, else a folder of that name: in `work/` (ignored by git) inside a clone, else in the current folder."""
    if out is not None:
        return folder_as_destination(out)
    inside_clone = is_checkout() and Path.cwd().is_relative_to(PACKAGE.resolve())
    return folder_as_destination((PACKAGE / "work" if inside_clone else Path.cwd()) / name)
