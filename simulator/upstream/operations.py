"""The host code of a PyTorch tree: its files, and what they define."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from ..errors import UpstreamError
from ..metal.includes import embed, include_folders
from ..objc.comments import without_comments
from .registrations import MpsKernel
from .shared_kernels import stubs_called

ATEN = Path("aten/src")
OPERATIONS = ATEN / "ATen/native/mps/operations"
KERNELS = ATEN / "ATen/native/mps/kernels"
NATIVE_FUNCTIONS = ATEN / "ATen/native/native_functions.yaml"
TAGS = NATIVE_FUNCTIONS.with_name("tags.yaml")
# Beside operations/: what a tree's host code is linked with.
SHARED = (OPERATIONS.parent / "OperationUtils.mm", ATEN / "ATen/mps/MPSStream.mm", ATEN / "ATen/mps/MPSDevice.mm")
# What no tree can be built without.
NEEDED = (OPERATIONS, NATIVE_FUNCTIONS, TAGS, OPERATIONS.parent / "OperationUtils.h", *SHARED)

METALLIB = re.compile(r"#\s*include\s*<ATen/native/mps/(\w+)_metallib\.h>")
_MODULE = re.compile(r"^(linalg|special|fft)_")
_STUB = re.compile(r"REGISTER_(?:MPS_)?DISPATCH\(\s*(\w+)")


@dataclass(frozen=True)
class OperationFile:
    """A `.mm` file below `operations/` of the tree `root`."""

    root: Path
    path: Path

    @property
    def name(self) -> str:
        """Its name without suffix, `Eye`."""
        return self.path.stem

    @cached_property
    def text(self) -> str:
        """Its text. Raises UpstreamError if it cannot be read."""
        try:
            return self.path.read_text("utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise UpstreamError(f"cannot read {self.path}: {error}") from None

    @cached_property
    def _code(self) -> str:
        return without_comments(self.text)

    @property
    def shaders(self) -> tuple[str, ...]:
        """The names of the Metal files whose kernels it launches."""
        return tuple(dict.fromkeys(METALLIB.findall(self.text)))

    @property
    def stubs(self) -> frozenset[str]:
        """The dispatch stubs that it fills."""
        return frozenset(_STUB.findall(self._code))

    def serves(self, kernel: MpsKernel) -> bool:
        """Whether it defines a kernel, or fills a dispatch stub that a shared kernel calls or that has its name."""
        if not kernel.shared:
            return defines(self._code, kernel.function)
        if not self.stubs.isdisjoint(stubs_called(self.root).get(kernel.function, ())):
            return True
        operator = kernel.overload.partition(".")[0].strip("_")
        names = {operator, _MODULE.sub("", operator), kernel.function.removesuffix("_out"), kernel.function}
        return not self.stubs.isdisjoint(f"{name}_stub" for name in names)


def defines(host: str, function: str) -> bool:
    """Whether Objective-C++ text defines a kernel of that name, structured or not, or through a macro."""
    head = rf"^(?!\s)(?:[A-Z][A-Z0-9_]*\s*\(\s*{function}\s*[,)]|[^\n;=]*\b{function}\s*\([^;]*?\)\s*\{{)"
    return re.search(head, host, re.MULTILINE) is not None


def require_tree(root: Path) -> None:
    """Raise UpstreamError for a folder that lacks what the host code of every tree needs."""
    for place in NEEDED:
        if not (root / place).exists():
            raise UpstreamError(f"{root} has no {place}: give a whole checkout of PyTorch")


def operation_files(root: Path, names: Iterable[str] | None = None) -> list[OperationFile]:
    """The files of a tree, all of them or those of the given names.

    Raises UpstreamError for a folder that is not a checkout of PyTorch, and for a name without a file.
    """
    folder = root / OPERATIONS
    if not folder.is_dir():
        raise UpstreamError(f"{root} has no {OPERATIONS}: give a checkout of PyTorch")
    files = [OperationFile(root, path) for path in sorted(folder.glob("*.mm"))]
    if names is None:
        return files
    file_names = {file.name for file in files}
    missing = [name for name in names if name not in file_names]
    if missing:
        raise UpstreamError(f"{folder} has no {missing[0]}.mm")
    return [file for file in files if file.name in set(names)]


def changed_headers(root: Path, include: Path) -> dict[str, str]:
    """The headers of a tree's operations and kernels that differ from the installed torch's or are missing there.

    By their path below the include folder. From the folder above them, only headers that torch lacks. All other headers
    are those of the installed torch.
    """
    texts = {}
    for folder in (OPERATIONS, KERNELS, OPERATIONS.parent):
        for path in sorted((root / folder).glob("*.h")):
            place = path.relative_to(root / ATEN)
            text = path.read_text("utf-8")
            own = include / place
            # The build adds a line before and after each header of a wheel.
            if not own.is_file() or (folder != OPERATIONS.parent and text.strip() not in own.read_text("utf-8")):
                texts[str(place)] = text
    return texts


def shader_header(root: Path, name: str) -> str:
    """The header that PyTorch's build generates from a Metal file for run-time compilation: a library from source.

    Includes of the tree, or else of the installed torch, are embedded.
    Raises UpstreamError when the tree has no such file.
    """
    path = root / KERNELS / f"{name}.metal"
    if not path.is_file():
        raise UpstreamError(f"{root} has no {KERNELS / name}.metal")
    whole = embed(path.read_text("utf-8"), path.name, include_folders(path, [root / ATEN, root])).text
    return f'static ::at::native::mps::MetalShaderLibrary lib(R"MPSMITH(\n{whole})MPSMITH");\n'
