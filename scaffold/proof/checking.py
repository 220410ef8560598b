"""`mpsmith check`: everything that can be said about Objective-C++ and Metal source without a Mac, file by file.

Types, code, an image linked against torch's own macOS libraries, and the operators that it registers. Nothing is run.
"""

from __future__ import annotations

import hashlib
import json
import re
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from ..errors import ScaffoldError
from ..manifest import Manifest, manifest_above
from .clang import Clang, Source
from .findings import Finding, has_errors
from .mach_object import MachObject
from .metal_sources import UNCHECKED, check_metal_file, check_metal_strings, metal_strings
from .patches import check_patch
from .registrations import check_registrations, known_overloads, read_registrations
from .toolchain import Toolchain, check_folder, find

CODE = (".mm", ".cpp")
METAL = (".metal",)
PATCH = (".patch",)
_HEADERS = (".h", ".hpp", ".metal")
_NO_ARC = "ATen/native/mps/OperationUtils.h"
_LOCAL_INCLUDE = re.compile(r'^\s*#\s*(?:include|import)\s*"([^"]+)"', re.MULTILINE)
_JUDGES = ("checking", "clang", "findings", "mach_object", "../manifest", "metal_sources", "patches", "registrations")


@dataclass(frozen=True)
class Answer:
    """What was found out about one file.

    Attributes:
        path: the file.
        steps: what was done: `types`, `compiled`, `linked`, `registrations`, `metal`, `patch`.
        registers: what the compiled code registers, such as `aten::softshrink.out (MPS)`.
        findings: what is wrong, and what is worth knowing.
        seconds: how long it took; of a cached answer, how long it had taken.
        cached: whether the answer was there already.
    """

    path: Path
    steps: tuple[str, ...]
    registers: tuple[str, ...]
    findings: tuple[Finding, ...]
    seconds: float
    cached: bool = False

    @property
    def accepted(self) -> bool:
        """Whether nothing is wrong with the file."""
        return not has_errors(self.findings)

    def as_json(self) -> dict[str, object]:
        """The answer as plain data."""
        return {
            "file": str(self.path),
            "accepted": self.accepted,
            "cached": self.cached,
            "steps": list(self.steps),
            "registers": list(self.registers),
            "seconds": round(self.seconds, 3),
            "findings": [finding.as_json() for finding in self.findings],
        }


@dataclass(frozen=True)
class Options:
    """How to check. `arc`: compile with automatic reference counting; None decides by manifest and includes."""

    arc: bool | None = None
    use_cache: bool = True
    precompile: bool = True


def files_to_check(path: Path) -> list[Path]:
    """The file itself, or everything below a folder that can be checked.

    Raises ScaffoldError when there is nothing.
    """
    suffixes = (*CODE, *METAL, *PATCH)
    if path.is_file():
        if path.suffix not in suffixes:
            raise ScaffoldError(f"{path}: cannot check this kind of file; {', '.join(suffixes)} can be checked")
        return [path]
    if not path.exists():
        raise ScaffoldError(f"there is no file or folder {path}")
    found = sorted(one for one in path.rglob("*") if one.suffix in suffixes and "build" not in one.parts)
    if not found:
        raise ScaffoldError(f"{path} has no {', '.join(suffixes)} file to check")
    return found


def check_files(paths: Sequence[Path], release: str | None = None, options: Options = Options()) -> Iterator[Answer]:
    """An answer for each file, in order, as soon as there is one.

    `release`: the macOS release of torch; by default that of the installed torch. Metal files need none.
    Raises ToolchainError when the compiler for the others was not set up, or fails.
    """
    toolchain = find(release) if any(path.suffix not in METAL for path in paths) else None
    clang = Clang(toolchain, precompile=options.precompile) if toolchain else None
    for path in paths:
        yield _answer(path, clang, options)


def _answer(path: Path, clang: Clang | None, options: Options) -> Answer:
    try:
        text = path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ScaffoldError(f"cannot read {path}: {error}") from None
    stored = check_folder() / "answers" / f"{_key(path, clang, options)}.json"
    if options.use_cache and (found := _stored_answer(stored, path)):
        return found
    start = time.perf_counter()
    answer = _examine(path, text, clang, options)
    answer = replace(answer, seconds=time.perf_counter() - start)
    stored.parent.mkdir(parents=True, exist_ok=True)
    stored.write_text(json.dumps(answer.as_json()))
    return answer


def _examine(path: Path, text: str, clang: Clang | None, options: Options) -> Answer:
    if clang is None or path.suffix in METAL:
        shader = tuple(check_metal_file(path, text))
        return Answer(path, _metal_step(shader), (), shader, 0.0)
    if path.suffix in PATCH:
        return Answer(path, ("patch",), (), tuple(check_patch(path, text, clang.toolchain)), 0.0)
    findings: list[Finding] = []
    steps: list[str] = []
    for one in _with_local_includes(path.resolve()):
        shaders = list(metal_strings(one.read_text("utf-8")))
        findings += check_metal_strings(path if one == path.resolve() else one, shaders)
        steps = [*_metal_step(findings)] if shaders else steps
    found = manifest_above(path)
    source = _source(path, text, found, options)
    registers: tuple[str, ...] = ()
    with tempfile.TemporaryDirectory(prefix="mpsmith-check-") as temporary:
        folder = Path(temporary)
        compiled = clang.compile(source, folder)
        findings += compiled.findings
        if compiled.object_file is not None:
            steps += ["types", "compiled"]
            missing = clang.link(source, compiled.object_file, folder)
            findings += missing
            steps += [] if missing else ["linked"]
            registered = read_registrations(MachObject(compiled.object_file))
            expected = found[1].registers if found and _promises(found[1], path, found[0]) else {}
            findings += check_registrations(registered, _known(clang.toolchain), path, text, expected)
            steps.append("registrations")
            registers = tuple(
                f"{one.namespace}::{one.name.rpartition('::')[2]} ({one.key})" for one in registered if one.key
            )
    return Answer(path, tuple(steps), registers, tuple(findings), 0.0)


def _metal_step(findings: Sequence[Finding]) -> tuple[str, ...]:
    """`metal` when the shader checker ran; without a compiler it leaves a note."""
    return () if any(finding.rule == UNCHECKED for finding in findings) else ("metal",)


@cache
def _known(toolchain: Toolchain) -> frozenset[str]:
    return known_overloads(toolchain.native_functions, f"native_functions.yaml of torch {toolchain.release}")


def _source(path: Path, text: str, found: tuple[Path, Manifest] | None, options: Options) -> Source:
    manifest = found[1] if found else None
    arc = options.arc
    if arc is None:
        arc = manifest.arc if manifest else _NO_ARC not in text
    include = tuple(found[0] / place for place in found[1].include) if found else ()
    definitions = manifest.definitions if manifest else (f"TORCH_EXTENSION_NAME={path.stem}",)
    return Source(path, text, arc, include, definitions)


def _promises(manifest: Manifest, path: Path, folder: Path) -> bool:
    """Whether this file is the one in which the scaffold registers its operators."""
    return str(path.resolve().relative_to(folder)) in manifest.files


def _key(path: Path, clang: Clang | None, options: Options) -> str:
    """A hash of all that decides the answer: the file, headers beside it, the manifest, the tools and this code."""
    tools = clang.toolchain.identity if clang else "metal"
    digest = hashlib.sha256(f"{path}\n{tools}\n{options.arc}\n".encode())
    found = manifest_above(path)
    folders = [found[0] / place for place in found[1].include] if found else []
    generated = [one for folder in folders for one in sorted(folder.rglob("*")) if one.suffix in _HEADERS]
    for one in [*_with_local_includes(path.resolve()), *generated]:
        digest.update(one.read_bytes())
    digest.update(found[1].to_json().encode() if found else b"")
    for name in _JUDGES:
        digest.update((Path(__file__).parent / f"{name}.py").read_bytes())
    return digest.hexdigest()[:32]


def _with_local_includes(path: Path) -> list[Path]:
    """The file and all that it includes in quotes, from its own folder."""
    seen: dict[Path, None] = {}
    waiting = [path]
    while waiting:
        one = waiting.pop()
        if one in seen or not one.is_file():
            continue
        seen[one] = None
        waiting += [one.parent / name for name in _LOCAL_INCLUDE.findall(one.read_text("utf-8", "replace"))]
    return list(seen)


def _stored_answer(stored: Path, path: Path) -> Answer | None:
    try:
        data = json.loads(stored.read_text())
        findings = tuple(Finding(**finding) for finding in data["findings"])
        return Answer(path, tuple(data["steps"]), tuple(data["registers"]), findings, data["seconds"], cached=True)
    except (OSError, ValueError, TypeError, KeyError):
        return None
