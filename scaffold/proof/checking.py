"""`mpsmith check`: checks Objective-C++ and Metal source without a Mac, file by file.

It checks types, compiles, links with torch's macOS libraries, and reads the registered operators. Nothing runs.
"""

from __future__ import annotations

import re
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from pathlib import Path

from ...simulator.air.library_check import check_library
from ...simulator.clang import CompilerMissingError, Diagnostic
from ...simulator.metal import METAL_VERSIONS, MetalVersion
from ...simulator.objc.compile_options import NO_OPTIONS, CompileOptions
from ..errors import ScaffoldError
from ..manifest import Manifest, manifest_above
from .check_results import CheckResult, cache_result, cached_result, result_key
from .host_code import check_host_code
from .literal_launches import check_encoders, check_literal_launches, kernel_parameters, named_types
from .mach_object import MachObject
from .macos_compiler import CompilationUnit, MacosCompiler
from .metal_sources import COMPILED_METAL, METAL, UNCHECKED, cache_keys, check_metal, kernel_names, metal_programs
from .patches import check_patch
from .registrations import check_registrations, known_overloads, read_registrations
from .signatures import signature_assertions
from .toolchain import Toolchain, find

CODE = (".mm", ".cpp")
PATCH = (".patch",)
_FAMILIES = Path(__file__).resolve().parents[2] / "kernels"
_HEADERS = (".h", ".hpp", ".metal")
_NO_ARC = "ATen/native/mps/OperationUtils.h"
_KERNEL = re.compile(r"\bkernel\s+void\s+(\w+)")
_LOCAL_INCLUDE = re.compile(r'^\s*#\s*(?:include|import)\s*"([^"]+)"', re.MULTILINE)


@dataclass(frozen=True)
class CheckedFile:
    """A file to check, with the files that it includes and the manifest of its scaffold.

    Attributes:
        path: the file.
        text: its text.
        folder: the folder of its scaffold, or the file's own folder.
        manifest: the manifest of the scaffold; None if no scaffold generated the folder.
        metal: the version of Metal to check for.
        options: of the compiler; not used with a manifest, which has its own.
    """

    path: Path
    text: str
    folder: Path
    manifest: Manifest | None
    metal: MetalVersion = METAL_VERSIONS[0]
    options: CompileOptions = NO_OPTIONS

    @classmethod
    def read(
        cls, path: Path, metal: MetalVersion = METAL_VERSIONS[0], options: CompileOptions = NO_OPTIONS
    ) -> CheckedFile:
        """Read a file. Raises ScaffoldError if it cannot be read."""
        try:
            text = path.read_text("utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise ScaffoldError(f"cannot read {path}: {error}") from None
        folder, manifest = manifest_above(path) or (path.parent, None)
        return cls(path, text, folder, manifest, metal, options)

    @cached_property
    def with_includes(self) -> list[Path]:
        """The file and the files that it includes in quotes, from its own folder and those of the options."""
        seen: dict[Path, None] = {}
        waiting = [self.path.resolve()]
        while waiting:
            file = waiting.pop()
            if file in seen or not file.is_file():
                continue
            seen[file] = None
            names = _LOCAL_INCLUDE.findall(file.read_text("utf-8", "replace"))
            waiting += [folder / name for folder in (file.parent, *self.options.include) for name in names]
        return list(seen)

    @cached_property
    def generated_headers(self) -> list[Path]:
        """The headers of the scaffold, in the folders that are searched first."""
        folders = self.manifest.include if self.manifest else ()
        headers = sorted(file for folder in folders for file in (self.folder / folder).rglob("*"))
        return [file for file in headers if file.suffix in _HEADERS]

    @cached_property
    def embedded_metal(self) -> list[tuple[Path, list[str]]]:
        """The Metal programs in string literals of the file, of its includes and of the scaffold's headers."""
        generated = self.generated_headers if self.path.suffix in CODE else []
        embedded = []
        for file in dict.fromkeys([*self.with_includes, *generated]):
            programs = metal_programs(file, file.read_text("utf-8")) if file.suffix not in METAL else []
            if programs:
                embedded.append((self.as_given(file), programs))
        return embedded

    @property
    def registrations(self) -> Mapping[str, str]:
        """The operators that the file must register: those of the manifest, if the scaffold generated the file."""
        if self.manifest and str(self.path.resolve().relative_to(self.folder)) in self.manifest.files:
            return self.manifest.registers
        return {}

    @property
    def unit(self) -> CompilationUnit:
        """The file with its compiler options."""
        if self.manifest is None:
            given = self.options
            definitions = (f"TORCH_EXTENSION_NAME={self.path.stem}", *given.definitions)
            arc = _NO_ARC not in self.text if given.arc is None else given.arc
            return CompilationUnit(self.path, self.text, arc, given.include, definitions, options=given.others)
        include = tuple(self.folder / folder for folder in self.manifest.include)
        return CompilationUnit(self.path, self.text, self.manifest.arc, include, self.manifest.definitions)

    def as_given(self, file: Path) -> Path:
        """A file as messages name it: the checked file by the path that the user gave."""
        return self.path if file == self.path.resolve() else file


def files_to_check(path: Path) -> list[Path]:
    """The file itself, or all files of a folder that can be checked.

    Raises ScaffoldError when there is nothing, and for a family's host code, which is checked as a part of its patch.
    """
    suffixes = (*CODE, *METAL, *COMPILED_METAL, *PATCH)
    if _is_part_of_a_patch(path):
        raise ScaffoldError(
            f"{path} belongs to a patch: run `mpsmith scaffold OPERATOR --target upstream --from-kernel`, "
            "and check the patch"
        )
    if path.is_file():
        if path.suffix not in suffixes:
            raise ScaffoldError(f"{path}: cannot check this kind of file; {', '.join(suffixes)} can be checked")
        return [path]
    if not path.exists():
        raise ScaffoldError(f"there is no file or folder {path}")
    candidates = (file for file in path.rglob("*") if file.suffix in suffixes and "build" not in file.parts)
    files = sorted(file for file in candidates if not _is_part_of_a_patch(file))
    if not files:
        raise ScaffoldError(f"{path} has no {', '.join(suffixes)} file to check")
    return files


def _is_part_of_a_patch(path: Path) -> bool:
    """Whether a file is a family's host code for PyTorch's tree, which is complete only in a patch."""
    return path.name == "upstream.mm" and path.resolve().parent.parent == _FAMILIES


def check_files(
    paths: Sequence[Path],
    release: str | None = None,
    *,
    metal: MetalVersion = METAL_VERSIONS[0],
    options: CompileOptions = NO_OPTIONS,
    use_cache: bool = True,
    precompile: bool = True,
    say: Callable[[str], None] = lambda line: None,
) -> Iterator[CheckResult]:
    """Yield a result for each file, in order, as soon as it is known.

    `release`: the macOS release of torch; by default that of the installed torch. Metal files need none.
    `metal`: the version of Metal; by default the lowest that torch compiles with. `options`: of the compiler.
    `say`: called with each step when it begins; not for cached results.
    Raises ToolchainError when the compiler for files other than Metal was not set up, or fails.
    """
    needs_macos = any(path.suffix not in METAL + COMPILED_METAL for path in paths)
    macos = MacosCompiler(find(release), precompile=precompile) if needs_macos else None
    for path in paths:
        if path.suffix in COMPILED_METAL:
            yield _checked_library(path, say)
        else:
            yield _checked(CheckedFile.read(path, metal, options), macos, use_cache, say)


def _checked_library(path: Path, say: Callable[[str], None]) -> CheckResult:
    say(f"reading {path}")
    start = time.perf_counter()
    findings = tuple(check_library(path))
    steps = () if any(finding.severity == "note" for finding in findings) else ("metal",)
    return CheckResult(path, steps, (), findings, time.perf_counter() - start)


def _checked(
    file: CheckedFile, macos: MacosCompiler | None, use_cache: bool, say: Callable[[str], None]
) -> CheckResult:
    path = file.path
    key = _key(file, macos)
    if use_cache and (cached := cached_result(key, path)):
        return cached
    say(f"compiling {path}")
    start = time.perf_counter()
    result = _examine(file, macos)
    result = replace(result, seconds=time.perf_counter() - start)
    cache_result(key, result)
    return result


def _examine(file: CheckedFile, macos: MacosCompiler | None) -> CheckResult:
    path, text = file.path, file.text
    if macos is None or path.suffix in METAL:
        return _examine_metal(file)
    if path.suffix in PATCH:
        made_for = file.manifest.torch if file.manifest and file.manifest.torch != macos.toolchain.release else ""
        return CheckResult(path, ("patch",), (), tuple(check_patch(path, text, macos.toolchain.torch, made_for)), 0.0)
    findings: list[Diagnostic] = []
    steps: list[str] = []
    for place, programs in file.embedded_metal:
        findings += check_metal(place, programs, file.metal)
        steps = [*_metal_step(findings)]
    findings += check_host_code(path, text)
    findings += _against_metal(file)
    source = file.unit
    asserted = signature_assertions(path, text, _known(macos.toolchain))
    if asserted:
        source = replace(source, assertions=asserted, include=(path.resolve().parent, *source.include))
    registers: tuple[str, ...] = ()
    with tempfile.TemporaryDirectory(prefix="mpsmith-check-") as temporary:
        folder = Path(temporary)
        compiled = macos.compile(source, folder)
        if compiled.object_file is None and file.manifest is None and file.options.arc is None:
            other = macos.compile(replace(source, arc=not source.arc), folder)
            if other.object_file is not None:
                said = (
                    f"it compiles {'without' if source.arc else 'with'} -fobjc-arc only: the build must not forget it"
                )
                compiled = replace(other, findings=(*other.findings, Diagnostic(str(path), 0, 0, "note", said, "arc")))
        findings += compiled.findings
        if compiled.object_file is not None:
            steps += ["types", "compiled"]
            missing = macos.link(source, compiled.object_file, folder)
            findings += missing
            steps += [] if missing else ["linked"]
            registered = read_registrations(MachObject(compiled.object_file))
            findings += check_registrations(registered, _known(macos.toolchain), path, text, file.registrations)
            steps.append("registrations")
            registers = tuple(
                f"{row.namespace}::{row.name.rpartition('::')[2]} ({row.key})" for row in registered if row.key
            )
    return CheckResult(path, tuple(steps), registers, tuple(findings), 0.0)


def _examine_metal(file: CheckedFile) -> CheckResult:
    findings = check_metal(file.path, metal_programs(file.path, file.text), file.metal, file.options)
    return CheckResult(file.path, _metal_step(findings), (), tuple(findings), 0.0)


def _against_metal(checked: CheckedFile) -> list[Diagnostic]:
    """Findings where the host code and the Metal source that it launches do not match."""
    path, text, embedded = checked.path, checked.text, checked.embedded_metal
    texts = {checked.as_given(file): file.read_text("utf-8", "replace") for file in checked.with_includes}
    findings = [finding for file, own in texts.items() for finding in check_encoders(file, own)]
    programs = [program for _, listed in embedded for program in listed]
    try:
        names = {name for file, listed in embedded for program in listed for name in kernel_names(program, file)}
    except CompilerMissingError:
        return findings
    names |= set(_KERNEL.findall(text)) if names else set()  # in a string that is not checked, such as a format
    findings += check_literal_launches(path, text, names, kernel_parameters(programs), named_types(texts.values()))
    return findings


def _metal_step(findings: Sequence[Diagnostic]) -> tuple[str, ...]:
    """The step `metal` if the shader checker ran; empty if the findings say that there is no compiler."""
    return () if any(finding.rule == UNCHECKED for finding in findings) else ("metal",)


@cache
def _known(toolchain: Toolchain) -> frozenset[str]:
    return known_overloads(toolchain.native_functions, f"native_functions.yaml of torch {toolchain.release}")


def _key(file: CheckedFile, macos: MacosCompiler | None) -> str:
    """The key of the result: the file, its includes, its Metal source, the manifest, the tools and our code."""
    path = file.path
    if macos is None or path.suffix in METAL:
        return result_key(path, "metal", cache_keys(path, metal_programs(path, file.text), file.metal, file.options))
    parts: list[str | bytes] = [
        key for place, programs in file.embedded_metal for key in cache_keys(place, programs, file.metal)
    ]
    parts += [header.read_bytes() for header in (*file.with_includes, *file.generated_headers)]
    parts += [file.manifest.to_json() if file.manifest else repr(file.options)]
    return result_key(path, macos.toolchain.identity, parts)
