"""Translates Metal source to C++ that passes the compiler's check; results are cached."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace

from ...cache import fingerprint
from ..clang import Diagnostic
from ..errors import MetalSyntaxError
from .compiler import RUN_AS, Build, MetalCompiler, MetalVersion
from .diagnostics import format_report, parse_clang
from .entries import EntryPoint, KernelArgument
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
"""Apple's headers that the host does not support."""
_UNKNOWN_NAME = re.compile(
    r"(?:no (?:template|type|member) named|unknown type name|undeclared identifier) '(\w+)'"
    r"( in namespace 'metal')?"
)
_USING = re.compile(r"\s*using namespace (?:metal::)?(\w+)")
_NAMES = {
    "visible_function_table": "function tables",
    "intersection_function_table": "function tables",
    "raytracing": "ray tracing",
    "primitive_acceleration_structure": "ray tracing",
    "instance_acceleration_structure": "ray tracing",
    **dict.fromkeys(("triangle_data", "ray_data", "intersection_params"), "ray tracing"),
    **dict.fromkeys(("command_buffer", "render_command", "compute_command"), "indirect command buffers"),
    **dict.fromkeys(("rasterization_rate_map_data", "rasterization_rate_map_decoder"), "rasterization rate maps"),
    **dict.fromkeys(("imageblock", "imageblock_layout_implicit", "imageblock_layout_explicit"), "imageblocks"),
    **dict.fromkeys(("MTLQuadTessellationFactorsHalf", "MTLTriangleTessellationFactorsHalf"), "tessellation"),
    **dict.fromkeys(("mesh in namespace 'metal'", "mesh_grid_properties"), "mesh shading"),
    "rgba8unorm": "imageblocks",
    "sparse_color": "sparse textures",
}
"""The names of them that programs use, through <metal_stdlib>."""


@dataclass(frozen=True)
class Translation:
    """A valid program: its C++ text and its kernels by name."""

    key: str
    body: str
    kernels: dict[str, EntryPoint]

    def unit(self, kernel: str) -> str:
        """The C++ of a kernel."""
        return self.body + wrap(self.kernels[kernel])

    def key_of(self, kernel: str, build: Build) -> str:
        """The cache key of a built kernel."""
        return fingerprint(self.key, "kernel", kernel, build)


def translate_and_build(program: ProgramSource, compiler: MetalCompiler) -> Translation:
    """Translate a program that is going to run: if it has one kernel, build it into the cache as part of the check.

    Raises:
        MetalSyntaxError: it does not compile; the message has file and line of the Metal source.
    """
    cached = _cached(program, compiler)
    if cached is not None:
        return cached
    rewritten, diagnostics = _rewritten(program, compiler)
    if rewritten is None:
        raise _syntax_error(diagnostics, program)
    source = _with_wrappers(rewritten)
    builds = len(rewritten.kernels) == 1 and rewritten.body == rewritten.full and not rewritten.kernels[0].texture_names
    if not builds:
        messages, library = compiler.check(source, "fast"), None
    else:
        messages, library = compiler.check_and_build(source, "fast")
    translation = _checked(program, compiler, rewritten, _all_diagnostics(rewritten, messages, program))
    if library is not None:
        compiler.cache.store(translation.key_of(rewritten.kernels[0].name, "fast"), ".so", library)
    return translation


def check_expanded(
    expanded: str,
    program: ProgramSource,
    compiler: MetalCompiler,
    build: Build = "fast",
    warnings: Sequence[str] = (),
    prefix: str = "",
) -> tuple[Rewritten, list[Diagnostic]]:
    """Rewrite and type-check a preprocessed program, with `prefix` in front."""
    rewritten = rewrite(expanded)
    messages = compiler.check(prefix + _with_wrappers(rewritten), build, warnings)
    return rewritten, _all_diagnostics(rewritten, messages, program)


def expand(
    program: ProgramSource, compiler: MetalCompiler, version: MetalVersion = RUN_AS
) -> tuple[str, list[Diagnostic]]:
    """The preprocessed program, or "" and the errors of preprocessing."""
    expanded, messages = compiler.preprocess(program, version)
    if expanded:
        return expanded, []
    return "", [_of_header(d) for d in parse_clang(messages, program.lines) if d.severity == "error"]


def _rewritten(program: ProgramSource, compiler: MetalCompiler) -> tuple[Rewritten | None, list[Diagnostic]]:
    """The program as C++, or None and the errors of preprocessing."""
    expanded, diagnostics = expand(program, compiler)
    return (rewrite(expanded), []) if expanded else (None, diagnostics)


def _with_wrappers(rewritten: Rewritten) -> str:
    """The C++ with all kernels, and the wrappers of those that can run."""
    return rewritten.full + "".join(wrap(kernel) for kernel in rewritten.kernels if not kernel.texture_names)


def _all_diagnostics(rewritten: Rewritten, messages: str, program: ProgramSource) -> list[Diagnostic]:
    """The diagnostics of the rewriter, and those of clang for other lines."""
    own = list(rewritten.diagnostics)
    lines = {(d.file, d.line) for d in own}
    return [
        *own,
        *(_of_name(d, program) for d in parse_clang(messages, program.lines) if (d.file, d.line) not in lines),
    ]


def _checked(
    program: ProgramSource, compiler: MetalCompiler, rewritten: Rewritten | None, diagnostics: Sequence[Diagnostic]
) -> Translation:
    """The translation, stored in the cache. Raises MetalSyntaxError if there are errors."""
    if rewritten is None or any(d.severity == "error" for d in diagnostics):
        raise _syntax_error(diagnostics, program)
    translation = Translation(_key(program, compiler), rewritten.body, {k.name: k for k in rewritten.kernels})
    compiler.cache.store(translation.key, ".json", _dump(translation))
    return translation


def _syntax_error(diagnostics: Sequence[Diagnostic], program: ProgramSource) -> MetalSyntaxError:
    errors = [d for d in diagnostics if d.severity == "error"]
    return MetalSyntaxError(format_report(errors, program.lines), errors[0].file, errors[0].line)


def _cached(program: ProgramSource, compiler: MetalCompiler) -> Translation | None:
    key = _key(program, compiler)
    kept = compiler.cache.find(key, ".json")
    return _load(key, kept[1]) if kept else None


def _key(program: ProgramSource, compiler: MetalCompiler) -> str:
    return fingerprint(compiler.identity, "translation", program.identity)


def _of_header(diagnostic: Diagnostic) -> Diagnostic:
    """The message of the preprocessor, or that a missing header of Apple is not supported."""
    missing = _MISSING_HEADER.search(diagnostic.message)
    feature = _NOT_SUPPORTED.get(missing[1].split("/")[0]) if missing else None
    if missing is None or feature is None:
        return diagnostic
    message = f"<{missing[1]}>: the simulator does not support {feature}"
    return replace(diagnostic, message=message, rule="not-supported")


def _of_name(diagnostic: Diagnostic, program: ProgramSource) -> Diagnostic:
    """The message of the compiler, or that a name of Apple's headers is not supported."""
    lines = program.lines.get(diagnostic.file, [])[diagnostic.line - 1 : diagnostic.line]
    unnamed = diagnostic.message == "expected namespace name"
    named = _USING.match(lines[0]) if unnamed and lines else _UNKNOWN_NAME.search(diagnostic.message)
    feature = _NAMES.get(named[1], _NAMES.get("".join(filter(None, named.groups())))) if named else None
    if named is None or feature is None:
        return diagnostic
    return replace(diagnostic, message=f"{named[1]}: the simulator does not support {feature}", rule="not-supported")


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
