"""From Metal source to C++ that passed the compiler's check, kept in the cache."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace

from ...fingerprint import fingerprint
from ..clang import Diagnostic
from .compiler import MetalCompiler
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


def translate(program: ProgramSource, compiler: MetalCompiler) -> Translation:
    """Compiles Metal source with its headers as far as its types are checked.

    Raises:
        MetalSyntaxError: it does not compile; the message has file and line of the Metal source.
    """
    key = fingerprint(compiler.identity, "translation", program.identity)
    kept = compiler.cache.find(key, ".json")
    if kept:
        return _load(key, kept[1])
    rewritten, diagnostics = check_host(program, compiler)
    errors = [d for d in diagnostics if d.severity == "error"]
    if rewritten is None or errors:
        report = format_report(errors, program.lines)
        first = errors[0]
        raise MetalSyntaxError(report, first.file, first.line)
    translation = Translation(key, rewritten.body, {k.name: k for k in rewritten.kernels})
    compiler.cache.store(key, ".json", _dump(translation))
    return translation


def check_host(
    program: ProgramSource, compiler: MetalCompiler, warnings: Sequence[str] = (), prefix: str = ""
) -> tuple[Rewritten | None, list[Diagnostic]]:
    """Preprocesses, rewrites and type-checks, with `prefix` in front; None if preprocessing failed."""
    expanded, messages = compiler.preprocess(program)
    if not expanded:
        return None, [_of_header(d) for d in parse_clang(messages, program.lines) if d.severity == "error"]
    rewritten = rewrite(expanded)
    unit = prefix + rewritten.full + "".join(map(wrap, rewritten.kernels))
    own = list(rewritten.diagnostics)
    of_clang = parse_clang(compiler.check(unit, "fast", warnings), program.lines)
    # What the rewriter explains better, clang need not repeat.
    lines = {(d.file, d.line) for d in own}
    return rewritten, [*own, *(d for d in of_clang if (d.file, d.line) not in lines)]


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
