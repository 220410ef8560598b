"""Compiles Objective-C++ for this machine with clang, against the C++ library of the system's compiler."""

from __future__ import annotations

import contextlib
import functools
import platform
import re
import subprocess
import sysconfig
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ...cache import cache_folder, fingerprint, fingerprint_of_code
from ..clang import Clang, Diagnostic, installed, messages
from ..clang.compiler import PLAIN_MESSAGES
from ..clang.diagnostics import COMPILE
from ..clang.letter_case import forward_includes
from ..clang.precompiled_headers import PrecompiledHeaders
from ..device.build import cxx_command
from ..errors import ExtensionError
from .apple.location import STUBS, apple_folder

_HERE = Path(__file__).parent
INCLUDE = _HERE / "include"
_MPS = _HERE.parent / "mpsgraph" / "include"  # MPS and MPSGraph as the stand-in has them, with Apple's types
# Without ARC an unknown selector is only a warning; on a Mac it is a crash.
_STRICT = ("-Werror=objc-method-access", "-Werror=incompatible-pointer-types", "-Werror=return-type")
_OBJECTIVE_C = ("-x", "objective-c++", "-fobjc-runtime=macosx-14.0", "-fblocks")
_C = ("-x", "c", "-fblocks")
_CXX = ("-x", "c++", "-fblocks")  # Apple's clang has blocks in C++, too
# The code and the headers that affect compilation.
_DECIDING_CODE = (
    "simulator.objc.compiler",
    "simulator.objc.include",
    "simulator.objc.apple",
    "simulator.mpsgraph.include",
)


class ExtensionBuildError(ExtensionError):
    """The source does not compile or link; `diagnostics` are the compiler's messages, with file and line."""

    def __init__(self, message: str, diagnostics: Sequence[Diagnostic] = ()) -> None:
        super().__init__(message)
        self.diagnostics = tuple(diagnostics)


@dataclass(frozen=True)
class Unit:
    """A file to compile.

    Attributes:
        path: the file.
        arc: with automatic reference counting.
        include: folders searched before all others.
        definitions: macros.
        options: more options for clang.
        c: as C, not C++.
    """

    path: Path
    arc: bool = True
    include: tuple[Path, ...] = ()
    definitions: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    c: bool = False

    @property
    def language(self) -> tuple[str, ...]:
        """The flags of its language."""
        if self.path.suffix != ".mm":
            return _C if self.c else _CXX
        return (*_OBJECTIVE_C, "-fobjc-arc") if self.arc else _OBJECTIVE_C


@dataclass(frozen=True)
class HostCompiler:
    """One clang, with the headers of Apple's frameworks, of torch (unless `torch` is None) and of the system."""

    clang: Clang
    apple: Path
    torch: Path | None

    @functools.cached_property
    def identity(self) -> str:
        """A key that changes with everything that affects the compilation of a file, except the file."""
        parts = (self.clang.identity, self.apple.name, *system_folders(), *self._torch_flags)
        return fingerprint(*parts, fingerprint_of_code(*_DECIDING_CODE))

    def compile(self, unit: Unit, target: Path) -> list[Diagnostic]:
        """Compile to an object file; returns the compiler's warnings.

        Raises:
            ExtensionBuildError: the file does not compile; it has clang's messages.
        """
        flags = self._flags(unit)
        text = unit.path.read_text("utf-8", "replace")
        with tempfile.TemporaryDirectory(prefix="mpsmith-includes-") as folder:
            diagnostics = forward_includes(unit.path, text, flags, Path(folder))
            header = None if diagnostics or unit.c else self._headers.find(text, flags, unit.include)
            uses = ["-include-pch", str(header)] if header else ["-I", folder] if diagnostics else []
            done = self.clang.run("clang", *flags, *uses, *_STRICT, "-c", str(unit.path), "-o", str(target))
        diagnostics += [
            Diagnostic(m.file, m.line, m.column, m.severity, m.text, m.flag or COMPILE) for m in messages(done.stderr)
        ]
        if done.succeeded:
            return diagnostics
        errors = [d for d in diagnostics if d.severity == "error"]
        if not errors:
            last = (done.stderr.strip().splitlines() or ["the compiler failed without a message"])[-1]
            errors = [Diagnostic(str(unit.path), 0, 0, "error", last, COMPILE)]
        more = f" (and {len(errors) - 1} more)" if len(errors) > 1 else ""
        raise ExtensionBuildError(f"{errors[0]}{more}", diagnostics or errors)

    @functools.cached_property
    def _headers(self) -> PrecompiledHeaders:
        return PrecompiledHeaders(self.clang, cache_folder() / "objc" / "pch", self.identity)

    def _flags(self, unit: Unit) -> list[str]:
        with_cxx = [folder for folder in system_folders() if "c++" in folder]
        others = [folder for folder in system_folders() if folder not in with_cxx]
        folders = [
            *with_cxx,
            str(self.clang.headers / "include"),
            *others,
            *map(str, (INCLUDE, *([_MPS] if self.torch else []), STUBS, self.apple, self._simd)),
            *map(str, self._torch_folders),
            sysconfig.get_paths()["include"],
        ]
        return [
            *(f"--target={platform.machine()}-linux-gnu", *unit.language, *self._standard_of(unit), "-O1"),
            *("-fexceptions", "-frtti", "-fPIC", "-nostdinc", "-nostdinc++", "-pthread"),
            *("-include", str(INCLUDE / "darwin.h"), "-Wno-everything", "-ferror-limit=30", *PLAIN_MESSAGES),
            *self._torch_flags,
            *(word for folder in unit.include for word in ("-I", str(folder))),
            *(word for folder in folders for word in ("-isystem", folder)),
            *(f"-D{definition}" for definition in unit.definitions),
            *unit.options,
        ]

    @functools.cached_property
    def _simd(self) -> Path:
        """A folder with only Apple's simd, out of all macOS headers in zig."""
        headers = self.clang.headers / "libc" / "include" / "any-darwin-any" / "simd"
        folder = cache_folder() / "objc" / f"simd-{fingerprint(str(headers))}"
        folder.mkdir(parents=True, exist_ok=True)
        with contextlib.suppress(FileExistsError):
            (folder / headers.name).symlink_to(headers)
        return folder

    def _standard_of(self, unit: Unit) -> list[str]:
        return [] if unit.c else [f"-std={self._standard}"]

    @property
    def _torch_folders(self) -> list[Path]:
        if self.torch is None:
            return []
        include = self.torch / "include"
        return [include, include / "torch" / "csrc" / "api" / "include"]

    @functools.cached_property
    def _torch_flags(self) -> list[str]:
        if self.torch is None:
            return []
        import torch

        release = f'-DMPSMITH_TORCH="{torch.__version__}"'  # part of the key of precompiled headers
        abi = f"-D_GLIBCXX_USE_CXX11_ABI={int(torch.compiled_with_cxx11_abi())}"
        return [abi, release, "-DFMT_HEADER_ONLY=1"]  # torch's libraries do not export fmt

    @functools.cached_property
    def _standard(self) -> str:
        """The C++ standard that the installed torch's own extension builder asks for, such as `c++20`."""
        if self.torch is None:
            return "c++20"
        text = (self.torch / "utils" / "cpp_extension.py").read_text("utf-8")
        return max(re.findall(r"-std=(c\+\+\d+)", text), default="c++17")


def host_compiler(*, torch: bool) -> HostCompiler:
    """The compiler for this machine.

    Raises:
        ExtensionError: the declarations of Apple's frameworks are missing; CompilerMissingError: there is no compiler.
    """
    if platform.system() != "Linux" or platform.machine() not in ("x86_64", "aarch64"):
        raise ExtensionError(
            f"Objective-C++ runs on the simulated device on Linux (x86_64, aarch64) only, not on {platform.system()} "
            f"{platform.machine()}; on a Mac, use its own compiler"
        )
    if not apple_folder().is_dir():
        raise ExtensionError(
            "there are no declarations of Apple's frameworks here; fetch them once with: mpsmith check --setup"
        )
    return HostCompiler(installed(), apple_folder(), _torch_folder() if torch else None)


def link(objects: Sequence[Path], target: Path, libraries: Sequence[str]) -> list[str]:
    """Link a shared library with the system's compiler, which finds its own C++ library; returns undefined symbols.

    Raises:
        ExtensionBuildError: the linker failed.
    """
    words = [*cxx_command(), "-shared", *map(str, objects), "-o", str(target), *libraries]
    done = subprocess.run(
        [*words, "-Wl,-z,defs,--warn-unresolved-symbols,--no-demangle"], capture_output=True, text=True, check=False
    )
    if done.returncode:
        aside = ("warning: ", ": in function ", "collect2: ")
        errors = [line for line in done.stderr.splitlines() if line and not any(word in line for word in aside)]
        raise ExtensionBuildError(f"the linker failed for {target.name}: {(errors or ['without a message'])[0]}")
    return sorted(set(re.findall(r"undefined reference to [`'](.+?)'$", done.stderr, re.MULTILINE)))


def demangled(symbols: Sequence[str]) -> list[str]:
    """Demangled symbols; unchanged if the tool is missing."""
    try:
        done = subprocess.run(["c++filt", *symbols], capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return list(symbols)
    return done.stdout.splitlines()


def torch_libraries() -> list[str]:
    """Linker options for the installed torch."""
    folder = _torch_folder() / "lib"
    names = ("c10", "torch_cpu", "torch", "torch_python")
    openmp = sorted(folder.glob("libgomp*.so*"))
    return [*(str(folder / f"lib{name}.so") for name in names), *map(str, openmp), f"-Wl,-rpath,{folder}"]


def _torch_folder() -> Path:
    import torch

    return Path(torch.__file__).parent


@functools.cache
def system_folders() -> tuple[str, ...]:
    """The header search paths of the system's C++ compiler, without its own headers."""
    done = subprocess.run(
        [*cxx_command(), "-E", "-x", "c++", "-v", "/dev/null"], capture_output=True, text=True, check=False
    )
    searched = re.search(r"#include <\.\.\.> search starts here:\n(.*?)End of search list", done.stderr, re.DOTALL)
    if searched is None:
        raise ExtensionError(f"`{' '.join(cxx_command())} -v` does not say where the system's C++ headers are")
    folders = [line.strip() for line in searched[1].splitlines()]
    return tuple(folder for folder in folders if "/lib/gcc/" not in folder or "include/c++" in folder)
