"""The host code of a PyTorch tree: which files run without Apple's MPSGraph, and what they define."""

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

# What only Apple's closed graph library, or its matrix kernels, can run.
_CLOSED = re.compile(
    r"\b(MPSGraph\w*|MPSNDArray\w*|MPSMatrix\w*|MPSImage\w*|MPSCNN\w*|runMPSGraph|LookUpOrCreateCachedGraph|Placeholder"
    r"|MPSCachedGraph|make_mps_graph)\b"
)
_HEADER = re.compile(rf"#\s*include\s*[<\"]{OPERATIONS.relative_to(ATEN)}/(\w+\.h)[>\"]")
METALLIB = re.compile(r"#\s*include\s*<ATen/native/mps/(\w+)_metallib\.h>")
_DEFINITION = re.compile(r"^(?!static\b)\w[^\n;=({]*[\s&*](\w+)\s*\([^;{}]*\)\s*\{", re.MULTILINE)
_STATIC = re.compile(r"^static\b[^\n;=({]*[\s&*](\w+)\s*\([^;{}]*\)\s*\{", re.MULTILINE)
_CALLED = re.compile(r"\b(\w+)\s*\(")
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

    @cached_property
    def defined(self) -> frozenset[str]:
        """The functions that other files can call."""
        return frozenset(_DEFINITION.findall(self._code))

    @cached_property
    def static(self) -> frozenset[str]:
        """The functions with internal linkage."""
        return frozenset(_STATIC.findall(self._code))

    @cached_property
    def called(self) -> frozenset[str]:
        """All names before parentheses, also in local headers that it includes."""
        return frozenset(_CALLED.findall(self._code + "".join(self._headers)))

    @property
    def _headers(self) -> list[str]:
        """The texts of local headers that it includes, directly or not, without comments."""
        texts: dict[str, str] = {}
        wanted = _HEADER.findall(self.text)
        for name in wanted:
            path = self.path.with_name(name)
            if name not in texts and path.is_file():
                texts[name] = path.read_text("utf-8")
                wanted += _HEADER.findall(texts[name])
        return [without_comments(text) for text in texts.values()]

    @property
    def refused(self) -> str:
        """Why it cannot run here, or ""."""
        found = _CLOSED.search(self._code)
        return f"needs {found[1]}, which is Apple's and closed" if found else ""

    @property
    def shaders(self) -> tuple[str, ...]:
        """The names of the Metal files whose kernels it launches."""
        return tuple(dict.fromkeys(METALLIB.findall(self.text)))

    @property
    def stubs(self) -> frozenset[str]:
        """The dispatch stubs that it fills."""
        return frozenset(_STUB.findall(self._code))

    def serves(self, kernel: MpsKernel) -> bool:
        """Whether it defines a kernel, or fills a dispatch stub that a shared one calls or that is named after it."""
        if not kernel.shared:
            return defines(self._code, kernel.function)
        if not self.stubs.isdisjoint(stubs_called(self.root).get(kernel.function, ())):
            return True
        operator = kernel.overload.partition(".")[0].strip("_")
        names = {operator, _MODULE.sub("", operator), kernel.function.removesuffix("_out"), kernel.function}
        return not self.stubs.isdisjoint(f"{name}_stub" for name in names)


def companions(file: OperationFile) -> list[OperationFile]:
    """A file, and those beside it that define functions which it calls and does not define; itself first.

    Those that cannot run here are left out: what they alone define raises.
    """
    beside = [OperationFile(file.root, path) for path in sorted(file.path.parent.glob("*.mm")) if path != file.path]
    able = [other for other in beside if not other.refused]
    found = [file]
    for one in found:
        wanted = one.called - one.defined - one.static
        found += [other for other in able if other not in found and other.defined & wanted]
    return found


def defines(host: str, function: str) -> bool:
    """Whether Objective-C++ text defines a kernel of that name, structured or not."""
    head = rf"^(?!\s)(?:TORCH_IMPL_FUNC\s*\(\s*{function}\s*\)|[^\n;=]*\b{function}\s*\([^;]*?\)\s*\{{)"
    return re.search(head, host, re.MULTILINE) is not None


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
    known = {file.name for file in files}
    missing = [name for name in names if name not in known]
    if missing:
        raise UpstreamError(f"{folder} has no {missing[0]}.mm")
    return [file for file in files if file.name in set(names)]


def changed_headers(root: Path, include: Path) -> dict[str, str]:
    """The headers beside a tree's operations and kernels that torch's own folder has in another form, or not at all.

    By their path below the include folder; of the folder above them, those that torch does not have. All other headers
    are those that the installed torch was built with.
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
    """The header that PyTorch's build makes of a Metal file for its run-time compiler: the library from its source.

    Includes of the tree, or else of the installed torch, are embedded.
    Raises UpstreamError when the tree has no such file.
    """
    path = root / KERNELS / f"{name}.metal"
    if not path.is_file():
        raise UpstreamError(f"{root} has no {KERNELS / name}.metal")
    whole = embed(path.read_text("utf-8"), path.name, include_folders(path, [root / ATEN, root])).text
    return f'static ::at::native::mps::MetalShaderLibrary lib(R"MPSMITH(\n{whole})MPSMITH");\n'
