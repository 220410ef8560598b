"""Compiles and links Objective-C++ for arm64 macOS: types, code, one image. Nothing is executed."""

from __future__ import annotations

import ctypes
import ctypes.util
import re
import sysconfig
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from ...simulator.clang import Diagnostic, Message, messages
from ...simulator.clang.compiler import PLAIN_MESSAGES
from ...simulator.clang.diagnostics import COMPILE
from ...simulator.clang.letter_case import forward_includes
from ...simulator.clang.precompiled_headers import PrecompiledHeaders
from ...simulator.objc.apple.location import STUBS
from ..release_files import check_folder
from .diagnostics import line_of
from .mach_object import MachObject
from .toolchain import LIBRARIES, Toolchain

MACOS = "14.0"

# zig ships libc++ without the file that the build writes; these are its choices for macOS.
_LIBCXX = (
    *("ABI_VERSION=1", "ABI_NAMESPACE=__1", "HAS_THREADS=1", "HAS_MONOTONIC_CLOCK=1", "HAS_TERMINAL=1"),
    *("HAS_MUSL_LIBC=0", "HAS_THREAD_API_PTHREAD=1", "HAS_THREAD_API_EXTERNAL=0", "HAS_THREAD_API_WIN32=0"),
    *("HAS_THREAD_API_C11=0", "HAS_VENDOR_AVAILABILITY_ANNOTATIONS=1", "HAS_FILESYSTEM=1", "HAS_RANDOM_DEVICE=1"),
    *("HAS_LOCALIZATION=1", "HAS_UNICODE=1", "HAS_WIDE_CHARACTERS=1", "HAS_TIME_ZONE_DATABASE=0"),
    *("HARDENING_MODE_DEFAULT=2", "ABI_FORCE_ITANIUM=0", "ABI_FORCE_MICROSOFT=0", "INSTRUMENTED_WITH_ASAN=0"),
    "ASSERTION_SEMANTIC_DEFAULT=2",
)
# Without ARC an unknown selector is only a warning; on a Mac it is a crash.
_STRICT = (
    "objc-method-access",
    "incompatible-pointer-types",
    "objc-literal-conversion",
    "return-type",
    "int-conversion",
)
_FRAMEWORKS = {
    "Metal": ("/System/Library/Frameworks/Metal.framework/Versions/A/Metal", "MTL"),
    "MetalPerformanceShaders": (
        "/System/Library/Frameworks/MetalPerformanceShaders.framework/Versions/A/MetalPerformanceShaders",
        "MPS",
    ),
    "MetalPerformanceShadersGraph": (
        "/System/Library/Frameworks/MetalPerformanceShadersGraph.framework/Versions/A/MetalPerformanceShadersGraph",
        "MPS",
    ),
    "Foundation": ("/System/Library/Frameworks/Foundation.framework/Versions/C/Foundation", "NS"),
}
_CONSTANT_STRING = "___CFConstantStringClassReference"
_EXTERN = re.compile(r'^extern "C" ([^;]*);', re.MULTILINE)
_EXTERN_NAME = re.compile(r"(\w+)\s*(?:\(|,|$)")

_UNDEFINED = re.compile(r"^error: undefined symbol: (\S+)", re.MULTILINE)
# Symbols of libc++: the headers mark what a macOS release lacks, so what compiles is there.
_STANDARD_LIBRARY = re.compile(
    r"^__Z(?:N?[KVRO]*St|NK?St|T[IVSTC]N?K?St|T[IVS][a-zPKl]|TVN10__cxxabiv1|TISt|nwm|nam|dlPv|daPv|nw|na|dl|da)"
    r"|^___cxa_|^___gxx_personality|^___dynamic_cast|^__Unwind_"
)


@dataclass(frozen=True)
class CompilationUnit:
    """A file to compile.

    Attributes:
        path: the file.
        text: its text.
        arc: whether with automatic reference counting.
        include: folders searched before all others.
        definitions: preprocessor definitions.
        assertions: static assertions, compiled after the text.
        options: more options of clang.
    """

    path: Path
    text: str
    arc: bool
    include: tuple[Path, ...] = ()
    definitions: tuple[str, ...] = ()
    assertions: str = ""
    options: tuple[str, ...] = ()


@dataclass(frozen=True)
class Compiled:
    """The object file, or None if the source does not compile, and clang's messages."""

    object_file: bytes | None
    findings: tuple[Diagnostic, ...]


class MacosCompiler:
    """Compiles and links with one toolchain. `precompile`: build and use precompiled headers."""

    def __init__(self, toolchain: Toolchain, *, precompile: bool = True) -> None:
        self.toolchain = toolchain
        self._precompile = precompile
        self._headers = PrecompiledHeaders(toolchain.clang, check_folder() / "pch", toolchain.identity)

    def compile(self, source: CompilationUnit, folder: Path) -> Compiled:
        """Compile to an object file for arm64 macOS; temporary files go to `folder`."""
        flags = self._flags(source)
        forwarded = forward_includes(source.path, source.text, flags, folder / "includes")
        precompile = self._precompile and not forwarded
        header = self._headers.find(source.text, flags, source.include) if precompile else None
        uses = ["-include-pch", str(header)] if header else ["-I", str(folder / "includes")] if forwarded else []
        target = folder / "object.o"
        place = _with_assertions(source, folder) if source.assertions else source.path
        done = self.toolchain.clang.run("clang", *flags, *uses, *_warnings(), "-c", str(place), "-o", str(target))
        findings = (*forwarded, *findings_in(done.stderr))
        if not done.succeeded:
            return Compiled(None, findings or (_unexplained(source.path, done.stderr),))
        return Compiled(target.read_bytes(), findings)

    def link(self, source: CompilationUnit, compiled: bytes, folder: Path) -> tuple[Diagnostic, ...]:
        """Link the object into an image for arm64 macOS against torch's own dylibs; empty when that succeeds."""
        undefined = MachObject(compiled).undefined()
        stubs = [str(path) for path in self._system_stubs(undefined, folder)]
        libraries = [
            str(path) for name in LIBRARIES if (path := self.toolchain.torch / "torch" / "lib" / name).is_file()
        ]
        target = folder / "image.dylib"
        done = self.toolchain.clang.run(
            *("cc", "-target", f"aarch64-macos.{MACOS}-none", "-shared", str(folder / "object.o")),
            *(*libraries, *stubs, "-o", str(target)),
        )
        if done.succeeded and target.is_file() and target.stat().st_size:
            return ()
        missing = _UNDEFINED.findall(done.stderr)
        if not missing:
            return (_unexplained(source.path, done.stderr),)
        return tuple(_undefined(source, name) for name in missing)

    def _flags(self, source: CompilationUnit) -> list[str]:
        library = self.toolchain.clang.headers
        torch = self.toolchain.torch / "torch" / "include"
        folders = [
            library / "libcxx" / "include",
            library / "libcxxabi" / "include",
            library / "include",
            STUBS,
            self.toolchain.apple,
            library / "libc" / "include" / "any-darwin-any",
            torch,
            torch / "torch" / "csrc" / "api" / "include",
            Path(sysconfig.get_paths()["include"]),
        ]
        return [
            *("-target", f"arm64-apple-macos{MACOS}", "-x", "objective-c++", f"-std={self.toolchain.standard}", "-O0"),
            *("-fblocks", "-nostdinc", "-nostdinc++", *PLAIN_MESSAGES),
            *("-ferror-limit=50", "-D_LIBCPP_PSTL_BACKEND_SERIAL", *(f"-D_LIBCPP_{choice}" for choice in _LIBCXX)),
            *(["-fobjc-arc"] if source.arc else []),
            *(word for place in source.include for word in ("-I", str(place))),
            *(word for place in folders for word in ("-isystem", str(place))),
            *(f"-D{definition}" for definition in source.definitions),
            *source.options,
        ]

    def _system_stubs(self, undefined: Sequence[str], folder: Path) -> list[Path]:
        """Text stubs for the parts of the system that an object may use; anything else stays undefined."""
        headers = {name: _header(self.toolchain, name).read_text() for name in _FRAMEWORKS}
        classes = {name: set(re.findall(r"@interface (\w+)", text)) for name, text in headers.items()}
        functions = {name: {f"_{word}" for word in _externs(text)} for name, text in headers.items()}
        functions["Foundation"].add(_CONSTANT_STRING)
        names = set(undefined)
        objc_classes = {name.removeprefix("_OBJC_CLASS_$_") for name in names if name.startswith("_OBJC_CLASS_$_")}
        stubs = {
            "libc++": ("/usr/lib/libc++.1.dylib", {name for name in names if _STANDARD_LIBRARY.match(name)}, set()),
            "libobjc": (
                "/usr/lib/libobjc.A.dylib",
                {name for name in names if name.startswith(("_objc_", "__objc_", "_OBJC_EHTYPE_"))},
                {"NSObject"},
            ),
            "Python": ("@rpath/Python", {name for name in names if name.startswith(("_Py", "__Py"))}, set()),
        }
        for name, (install, _) in _FRAMEWORKS.items():
            stubs[name] = (install, names & functions[name], objc_classes & classes[name])
        paths = []
        for name, (install, symbols, of_classes) in stubs.items():
            path = folder / f"{name}.tbd"
            path.write_text(_text_stub(install, symbols, of_classes))
            paths.append(path)
        return paths


def _externs(header: str) -> Iterator[str]:
    """The functions and constants that a header declares."""
    for declared in _EXTERN.findall(header):
        yield from _EXTERN_NAME.findall(re.sub(r"\(.*", "(", declared, flags=re.DOTALL))


def _header(toolchain: Toolchain, framework: str) -> Path:
    generated = toolchain.apple / framework / f"{framework}.h"
    return generated if generated.is_file() else STUBS / framework / f"{framework}.h"


def _warnings() -> list[str]:
    unused = ("unused-variable", "unused-function", "unused-parameter", "unused-but-set-variable")
    return ["-Wall", *(f"-Wno-{name}" for name in unused), *(f"-Werror={name}" for name in _STRICT)]


def findings_in(stderr: str) -> list[Diagnostic]:
    """Clang's messages; the first note that is not a list of candidates is added to its error."""
    return [_diagnostic(message) for message in messages(stderr)]


def _diagnostic(message: Message) -> Diagnostic:
    note = next((note for note in message.notes if "candidate" not in note.text), None)
    text = f"{message.text} (note: {note.text}, {Path(note.file).name}:{note.line})" if note else message.text
    return Diagnostic(message.file, message.line, message.column, message.severity, text, message.flag or COMPILE)


def _unexplained(path: Path, stderr: str) -> Diagnostic:
    lines = [line for line in stderr.splitlines() if line.strip()]
    message = lines[-1] if lines else "the compiler failed without a message"
    return Diagnostic(str(path), 0, 0, "error", message, COMPILE)


def _undefined(source: CompilationUnit, symbol: str) -> Diagnostic:
    readable = demangled(symbol)
    word = re.search(r"(\w+)(?:<.*>)?(?:\(|$)", readable)
    line = line_of(source.text, f"{word[1]}(") if word else 0
    message = f"undefined symbol: {readable}; no library of torch for macOS exports it"
    return Diagnostic(str(source.path), line, 0, "error", message, "link")


def _text_stub(install_name: str, symbols: set[str], classes: set[str]) -> str:
    lines = [
        "--- !tapi-tbd",
        "tbd-version: 4",
        "targets: [ arm64-macos ]",
        f"install-name: '{install_name}'",
        "current-version: 1",
        "compatibility-version: 1",
    ]
    if symbols or classes:
        lines += ["exports:", "  - targets: [ arm64-macos ]"]
    if symbols:
        listed = ", ".join(f"'{name}'" for name in sorted(symbols))
        lines.append(f"    symbols: [ {listed} ]")
    if classes:
        lines.append(f"    objc-classes: [ {', '.join(sorted(classes))} ]")
    return "\n".join([*lines, "...", ""])


def demangled(symbol: str) -> str:
    """The C++ name of a Mach-O symbol, by this system's C++ library; the symbol itself where there is none."""
    name = symbol.removeprefix("_")
    library = (
        ctypes.util.find_library("stdc++") or ctypes.util.find_library("c++abi") or ctypes.util.find_library("c++")
    )
    if not name.startswith("_Z") or library is None:
        return name
    try:
        demangle = ctypes.CDLL(library).__cxa_demangle
    except (OSError, AttributeError):
        return name
    demangle.restype = ctypes.c_char_p
    result = demangle(name.encode(), None, None, ctypes.byref(ctypes.c_int()))
    return result.decode("utf-8", "replace") if result else name


def _with_assertions(source: CompilationUnit, folder: Path) -> Path:
    """A copy of the file with the lines `assertions` appended; clang's messages name the original file."""
    place = folder / source.path.name
    place.write_text(f'#line 1 "{source.path}"\n{source.text}\n{source.assertions}', "utf-8")
    return place
