"""From Metal source to C++ that passed the compiler's check, kept in the cache."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace

from ...cache import fingerprint
from ..clang import Diagnostic
from .compiler import Build, MetalCompiler
from .diagnostics import format_report, parse_clang
from .entries import EntryPoint, KernelArgument
from .errors import MetalSyntaxError
from .includes import ProgramSource
from .rewriter import Rewritten, rewrite
from .tokens import Location
from .wrappers import wrap

_MISSING_HEADER = re.compile(r"'([\w/.]+)' file not found")
_NOT_SUPPORTED = {
    "MetalPerformancePrimitives": "MetalPerformancePrimitives",
    "metal_tensor": "tensors",
    "metal_cooperative_tensor": "tensors",
    "metal_raytracing": "ray tracing",
    "metal_mesh": "mesh shading",
    "metal_tessellation": "tessellation",
    "metal_imageblocks": "imageblocks",
    "metal_visible_function_table": "function tables",
}
"""Headers of Apple's that have nothing on the host."""


@dataclass(frozen=True)
class Translation:
    """A program that compiles: its C++ text and its kernels by name."""

    key: str
    body: str
    kernels: dict[str, EntryPoint]

    def unit(self, kernel: str) -> str:
        """The C++ of one kernel alone."""
        return self.body + wrap(self.kernels[kernel])

    def key_of(self, kernel: str, build: Build) -> str:
        """What a built kernel is kept under."""
        return fingerprint(self.key, "kernel", kernel, build)


def translate(program: ProgramSource, compiler: MetalCompiler) -> Translation:
    """Compiles Metal source with its headers as far as its types are checked.

    Raises:
        MetalSyntaxError: it does not compile; the message has file and line of the Metal source.
    """
    kept = _kept(program, compiler)
    if kept is not None:
        return kept
    return _passed(program, compiler, *check_host(program, compiler))


def translate_and_build(program: ProgramSource, compiler: MetalCompiler) -> Translation:
    """The same of a program that is going to run: where it has one kernel, the check builds that, into the cache.

    Raises:
        MetalSyntaxError: it does not compile; the message has file and line of the Metal source.
    """
    kept = _kept(program, compiler)
    if kept is not None:
        return kept
    rewritten, diagnostics = _rewritten(program, compiler)
    if rewritten is None:
        raise _syntax_error(diagnostics, program)
    whole = _whole(rewritten)
    if len(rewritten.kernels) != 1 or rewritten.body != rewritten.full:
        messages, library = compiler.check(whole, "fast"), None
    else:
        messages, library = compiler.check_and_build(whole, "fast")
    translation = _passed(program, compiler, rewritten, _told(rewritten, messages, program))
    if library is not None:
        compiler.cache.store(translation.key_of(rewritten.kernels[0].name, "fast"), ".so", library)
    return translation


def check_host(
    program: ProgramSource, compiler: MetalCompiler, warnings: Sequence[str] = (), prefix: str = ""
) -> tuple[Rewritten | None, list[Diagnostic]]:
    """Preprocesses, rewrites and type-checks, with `prefix` in front; None if preprocessing failed."""
    rewritten, diagnostics = _rewritten(program, compiler)
    if rewritten is None:
        return None, diagnostics
    return rewritten, _told(rewritten, compiler.check(prefix + _whole(rewritten), "fast", warnings), program)


def _rewritten(program: ProgramSource, compiler: MetalCompiler) -> tuple[Rewritten | None, list[Diagnostic]]:
    """The program as C++; None where preprocessing failed, and why."""
    expanded, messages = compiler.preprocess(program)
    if not expanded:
        return None, [_of_header(d) for d in parse_clang(messages, program.lines) if d.severity == "error"]
    return rewrite(expanded), []


def _whole(rewritten: Rewritten) -> str:
    """The C++ with all kernels and what wraps them."""
    return rewritten.full + "".join(map(wrap, rewritten.kernels))


def _told(rewritten: Rewritten, messages: str, program: ProgramSource) -> list[Diagnostic]:
    """What the rewriter found and clang says; what the rewriter explains better, clang need not repeat."""
    own = list(rewritten.diagnostics)
    lines = {(d.file, d.line) for d in own}
    return [*own, *(d for d in parse_clang(messages, program.lines) if (d.file, d.line) not in lines)]


def _passed(
    program: ProgramSource, compiler: MetalCompiler, rewritten: Rewritten | None, diagnostics: Sequence[Diagnostic]
) -> Translation:
    """The translation of a program without errors, kept for the next time. Raises MetalSyntaxError for another."""
    if rewritten is None or any(d.severity == "error" for d in diagnostics):
        raise _syntax_error(diagnostics, program)
    translation = Translation(_key(program, compiler), rewritten.body, {k.name: k for k in rewritten.kernels})
    compiler.cache.store(translation.key, ".json", _dump(translation))
    return translation


def _syntax_error(diagnostics: Sequence[Diagnostic], program: ProgramSource) -> MetalSyntaxError:
    errors = [d for d in diagnostics if d.severity == "error"]
    return MetalSyntaxError(format_report(errors, program.lines), errors[0].file, errors[0].line)


def _kept(program: ProgramSource, compiler: MetalCompiler) -> Translation | None:
    key = _key(program, compiler)
    kept = compiler.cache.find(key, ".json")
    return _load(key, kept[1]) if kept else None


def _key(program: ProgramSource, compiler: MetalCompiler) -> str:
    return fingerprint(compiler.identity, "translation", program.identity)


def _of_header(diagnostic: Diagnostic) -> Diagnostic:
    """What the preprocessor says, where it misses a header of Apple's that stands for what cannot run here."""
    missing = _MISSING_HEADER.search(diagnostic.message)
    feature = _NOT_SUPPORTED.get(missing[1].split("/")[0]) if missing else None
    if missing is None or feature is None:
        return diagnostic
    message = f"<{missing[1]}>: the simulator does not support {feature}"
    return replace(diagnostic, message=message, rule="not-supported")


def _dump(translation: Translation) -> bytes:
    return json.dumps({"body": translation.body, "kernels": [asdict(k) for k in translation.kernels.values()]}).encode()


def _load(key: str, content: bytes) -> Translation:
    data = json.loads(content)
    kernels = {
        k["name"]: EntryPoint(
            k["name"],
            k["function"],
            k["signature"],
            tuple(KernelArgument(**a) for a in k["arguments"]),
            k["max_threads"],
            Location(**k["location"]),
        )
        for k in data["kernels"]
    }
    return Translation(key, data["body"], kernels)
