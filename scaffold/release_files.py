"""The files of a release of torch that scaffolds are made from: those of the installed torch or of a macOS wheel.

Both have the same layout. The set-up of the checker (`proof.setup`) keeps wheels. Nothing here imports torch.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ..audit.releases.surface import native_functions
from ..audit.releases.wheel.fetch import require_version
from ..cache import cache_folder
from ..registry.torch_release import base_version
from .errors import ToolchainError

NATIVE_FUNCTIONS = Path("torchgen/packaged/ATen/native/native_functions.yaml")
COMMON_MPS = Path("torch/testing/_internal/common_mps.py")
OPINFOS = Path("torch/testing/_internal/common_methods_invocations.py")


@dataclass(frozen=True)
class ReleaseFiles:
    """The files of one release below `root`, the folder that holds `torch` and `torchgen`."""

    release: str
    root: Path
    installed: bool

    @property
    def native_functions(self) -> Path:
        """The schemas and kernels of every overload."""
        return self.root / NATIVE_FUNCTIONS

    @property
    def tags(self) -> Path:
        """The tags that native_functions.yaml may use."""
        return self.native_functions.with_name("tags.yaml")

    @property
    def common_mps(self) -> Path:
        """PyTorch's lists of what fails on mps; not every release ships it."""
        return self.root / COMMON_MPS

    @property
    def opinfos(self) -> Path:
        """PyTorch's OpInfos; of a release that was set up it may not be kept."""
        return self.root / OPINFOS

    @property
    def include(self) -> Path:
        """The C++ headers."""
        return self.root / "torch" / "include"


def check_folder() -> Path:
    """The checker's folder in the cache, for all that it fetches and builds."""
    return cache_folder() / "check"


def torch_folder(release: str) -> Path:
    """The folder of the files that were kept of a release's macOS wheel."""
    return check_folder() / f"torch-{release}"


def chosen_release(release: str | None) -> str:
    """The requested release, else that of the installed torch."""
    return release or base_version(native_functions.installed_release())


def files_of(release: str | None) -> ReleaseFiles:
    """The files of the installed torch, or of another release that was set up.

    Raises ToolchainError when that release was not set up, WheelError for an invalid release.
    """
    own = chosen_release(None)
    if release is None or release == own:
        return ReleaseFiles(own, native_functions.installed_path().parents[4], installed=True)
    require_version(release)
    folder = torch_folder(release)
    if not folder.is_dir():
        raise ToolchainError(
            f"there is nothing here of torch {release}; fetch it once with: mpsmith check --setup --torch {release}"
        )
    return ReleaseFiles(release, folder, installed=False)
