"""`mpsmith check`: checks Objective-C++ and Metal source without a Mac, file by file.

It checks types, compiles, links with torch's macOS libraries, and reads the registered operators. Nothing runs.
"""

from __future__ import annotations

import re
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from ...simulator.clang import CompilerMissingError, Diagnostic
from ...simulator.metal import reflect
from ..errors import ScaffoldError
from ..manifest import Manifest, manifest_above
from .check_results import CheckResult, cache_result, cached_result, result_key
from .diagnostics import has_errors
from .family_launches import NOT_RUN, RUN, check_family_launches, family_of, is_part_of_a_patch, python_of
from .host_code import check_host_code
from .literal_launches import check_encoders, check_literal_launches, kernel_parameters, named_types
from .mach_object import MachObject
from .macos_compiler import CompilationUnit, MacosCompiler
from .metal_sources import METAL, UNCHECKED, bundled_metal, check_metal, kernel_names, metal_keys, metal_programs
from .patches import check_patch
from .registrations import check_registrations, known_overloads, read_registrations
from .signatures import signature_assertions
from .toolchain import Toolchain, find
from .upstream_launches import check_upstream_launches

CODE = (".mm", ".cpp")
PATCH = (".patch",)
_HEADERS = (".h", ".hpp", ".metal")
_NO_ARC = "ATen/native/mps/OperationUtils.h"
_LOCAL_INCLUDE = re.compile(r'^\s*#\s*(?:include|import)\s*"([^"]+)"', re.MULTILINE)


@dataclass(frozen=True)
class Options:
    """How to check. `arc`: compile with automatic reference counting; None decides by manifest and includes."""

    arc: bool | None = None
    use_cache: bool = True
    precompile: bool = True


def files_to_check(path: Path) -> list[Path]:
    """The file itself, or all files of a folder that can be checked.

    Raises ScaffoldError when there is nothing, and for a family's host code, which is checked as a part of its patch.
    """
    suffixes = (*CODE, *METAL, *PATCH)
    if is_part_of_a_patch(path):
        raise ScaffoldError(
            f"{path} is a part of a patch: make it with `mpsmith scaffold OPERATOR --target upstream --from-kernel`, "
            "and check that"
        )
    if path.is_file():
        if path.suffix not in suffixes:
            raise ScaffoldError(f"{path}: cannot check this kind of file; {', '.join(suffixes)} can be checked")
        return [path]
    if not path.exists():
        raise ScaffoldError(f"there is no file or folder {path}")
    candidates = (file for file in path.rglob("*") if file.suffix in suffixes and "build" not in file.parts)
    files = sorted(file for file in candidates if not is_part_of_a_patch(file))
    if not files:
        raise ScaffoldError(f"{path} has no {', '.join(suffixes)} file to check")
    return files


def check_files(
    paths: Sequence[Path], release: str | None = None, options: Options = Options()
) -> Iterator[CheckResult]:
    """A result for each file, in order, as soon as there is one.

    `release`: the macOS release of torch; by default that of the installed torch. Metal files need none.
    Raises ToolchainError when the compiler for the others was not set up, or fails.
    """
    needs_macos = any(path.suffix not in METAL for path in paths)
    macos = MacosCompiler(find(release), precompile=options.precompile) if needs_macos else None
    for path in paths:
        yield _checked(path, macos, options)


def _checked(path: Path, macos: MacosCompiler | None, options: Options) -> CheckResult:
    try:
        text = path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ScaffoldError(f"cannot read {path}: {error}") from None
    key = _key(path, text, macos, options)
    if options.use_cache and (kept := cached_result(key, path)):
        return kept
    start = time.perf_counter()
    result = _examine(path, text, macos, options)
    result = replace(result, seconds=time.perf_counter() - start)
    cache_result(key, result)
    return result


def _examine(path: Path, text: str, macos: MacosCompiler | None, options: Options) -> CheckResult:
    if macos is None or path.suffix in METAL:
        return _examine_metal(path, text)
    if path.suffix in PATCH:
        return CheckResult(path, ("patch",), (), tuple(check_patch(path, text, macos.toolchain.torch)), 0.0)
    findings: list[Diagnostic] = []
    steps: list[str] = []
    for file, programs in _metal_inside(path):
        findings += check_metal(file, programs)
        steps = [*_metal_step(findings)]
    findings += check_host_code(path, text)
    located = manifest_above(path)
    findings += _against_metal(path, text)
    source = _source(path, text, located, options)
    asserted = signature_assertions(path, text, _known(macos.toolchain))
    if asserted:
        source = replace(source, behind=asserted, include=(path.resolve().parent, *source.include))
    registers: tuple[str, ...] = ()
    with tempfile.TemporaryDirectory(prefix="mpsmith-check-") as temporary:
        folder = Path(temporary)
        compiled = macos.compile(source, folder)
        findings += compiled.findings
        if compiled.object_file is not None:
            steps += ["types", "compiled"]
            missing = macos.link(source, compiled.object_file, folder)
            findings += missing
            steps += [] if missing else ["linked"]
            registered = read_registrations(MachObject(compiled.object_file))
            expected = located[1].registers if located and _promises(located[1], path, located[0]) else {}
            findings += check_registrations(registered, _known(macos.toolchain), path, text, expected)
            steps.append("registrations")
            registers = tuple(
                f"{row.namespace}::{row.name.rpartition('::')[2]} ({row.key})" for row in registered if row.key
            )
    return CheckResult(path, tuple(steps), registers, tuple(findings), 0.0)


def _examine_metal(path: Path, text: str) -> CheckResult:
    findings = check_metal(path, metal_programs(path, text))
    steps = _metal_step(findings)
    family = family_of(path)
    if family and steps and not has_errors(findings):
        findings += check_family_launches(path, family)
        steps += () if any(finding.rule == NOT_RUN for finding in findings) else (RUN,)
    return CheckResult(path, steps, (), tuple(findings), 0.0)


def _metal_inside(path: Path) -> Iterator[tuple[Path, list[str]]]:
    """The Metal programs in string literals of a C++ file, of the headers beside it and of those of its package."""
    located = manifest_above(path)
    generated = _generated_headers(*located) if located and path.suffix in CODE else []
    for file in dict.fromkeys([*_with_local_includes(path.resolve()), *generated]):
        programs = metal_programs(file, file.read_text("utf-8")) if file.suffix not in METAL else []
        if programs:
            yield path if file == path.resolve() else file, programs


def _against_metal(path: Path, text: str) -> list[Diagnostic]:
    """Findings where the host code and the Metal source that it launches do not match."""
    files = _with_local_includes(path.resolve())
    texts = {path if file == path.resolve() else file: file.read_text("utf-8", "replace") for file in files}
    findings = [finding for file, own in texts.items() for finding in check_encoders(file, own)]
    embedded = list(_metal_inside(path))
    programs = [program for _, listed in embedded for program in listed]
    try:
        names = {name for file, listed in embedded for program in listed for name in kernel_names(program, file)}
        in_tree = [(file, [file.read_text("utf-8", "replace")]) for file in bundled_metal(path, text)]
        kernels = {
            name: kernel
            for file, listed in [*embedded, *in_tree]
            for program in listed
            for name, kernel in reflect(program, file).items()
        }
    except CompilerMissingError:
        return findings
    findings += check_literal_launches(path, text, names, kernel_parameters(programs), named_types(texts.values()))
    for file, own in texts.items():
        findings += check_upstream_launches(file, own, kernels)
    return findings


def _metal_step(findings: Sequence[Diagnostic]) -> tuple[str, ...]:
    """`metal` when the shader checker ran; without a compiler it leaves a note."""
    return () if any(finding.rule == UNCHECKED for finding in findings) else ("metal",)


@cache
def _known(toolchain: Toolchain) -> frozenset[str]:
    return known_overloads(toolchain.native_functions, f"native_functions.yaml of torch {toolchain.release}")


def _source(path: Path, text: str, located: tuple[Path, Manifest] | None, options: Options) -> CompilationUnit:
    folder, manifest = located or (path.parent, None)
    arc = options.arc
    if arc is None:
        arc = manifest.arc if manifest else _NO_ARC not in text
    include = tuple(folder / place for place in manifest.include) if manifest else ()
    definitions = manifest.definitions if manifest else (f"TORCH_EXTENSION_NAME={path.stem}",)
    return CompilationUnit(path, text, arc, include, definitions)


def _promises(manifest: Manifest, path: Path, folder: Path) -> bool:
    """Whether the scaffold generated this file, which then registers its operators."""
    return str(path.resolve().relative_to(folder)) in manifest.files


def _key(path: Path, text: str, macos: MacosCompiler | None, options: Options) -> str:
    """The key of the result: the file, its includes, its Metal source, the manifest, the tools and our code."""
    if macos is None or path.suffix in METAL:
        python = [file.read_bytes() for file in python_of(path)] if family_of(path) else []
        return result_key(path, "metal", [*metal_keys(path, metal_programs(path, text)), *python])
    parts: list[str | bytes] = [str(options.arc)]
    parts += [key for file, programs in _metal_inside(path) for key in metal_keys(file, programs)]
    parts += [file.read_bytes() for file in (*_with_local_includes(path.resolve()), *bundled_metal(path, text))]
    if located := manifest_above(path):
        folder, manifest = located
        parts += [file.read_bytes() for file in _generated_headers(folder, manifest)]
        parts.append(manifest.to_json())
    return result_key(path, macos.toolchain.identity, parts)


def _generated_headers(folder: Path, manifest: Manifest) -> list[Path]:
    """The headers of a scaffold, in the folders that are searched first."""
    headers = sorted(file for place in manifest.include for file in (folder / place).rglob("*"))
    return [file for file in headers if file.suffix in _HEADERS]


def _with_local_includes(path: Path) -> list[Path]:
    """The file and all that it includes in quotes, from its own folder."""
    seen: dict[Path, None] = {}
    waiting = [path]
    while waiting:
        file = waiting.pop()
        if file in seen or not file.is_file():
            continue
        seen[file] = None
        waiting += [file.parent / name for name in _LOCAL_INCLUDE.findall(file.read_text("utf-8", "replace"))]
    return list(seen)
