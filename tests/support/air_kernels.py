"""Kernels written by hand in LLVM assembly, as Apple's compiler leaves them, and libraries of them."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from mpsmith.simulator.air.library import AirLibrary
from mpsmith.simulator.clang import installed
from support.metal_libraries import write_metal_library

RELEASE = "9.9.9"
FLUSHING = '!air.compile_options = !{!900}\n!900 = !{!"air.compile.denorms_disable"}\n'

_SPACES = {"device": 1, "constant": 2, "threadgroup": 3}
_SIZES = {"char": 1, "uchar": 1, "bool": 1, "half": 2, "bfloat": 2, "float": 4, "int": 4, "uint": 4, "long": 8}


def buffer(name: str, type_name: str, index: int, *words: str, space: str = "device", size: int = 0) -> str:
    """What `!air.kernel` says of a buffer, without its position; `words` are more keys such as air.arg_unused."""
    access = "air.read_write" if space != "constant" else "air.read"
    size = size or _SIZES[type_name]
    more = "".join(f"{word}, " for word in words)
    return (
        f'!"air.buffer", {more}!"air.location_index", i32 {index}, i32 1, !"{access}", '
        f'!"air.address_space", i32 {_SPACES[space]}, !"air.arg_type_size", i32 {size}, '
        f'!"air.arg_type_align_size", i32 {size}, !"air.arg_type_name", !"{type_name}", !"air.arg_name", !"{name}"'
    )


def builtin(kind: str, type_name: str = "uint") -> str:
    """What `!air.kernel` says of a value that the GPU passes."""
    return f'!"air.{kind}", !"air.arg_type_name", !"{type_name}", !"air.arg_name", !"{kind}"'


def kernel(
    name: str,
    parameters: str,
    arguments: Sequence[str],
    body: str,
    *,
    declarations: str = "",
    metadata: str = "",
    entry: str = "!{ptr @NAME, !1, !2}",
) -> str:
    """A module with one kernel: its parameters in assembly, a row of metadata for each, and its instructions."""
    rows = "\n".join(f"!{10 + i} = !{{i32 {i}, {row}}}" for i, row in enumerate(arguments))
    return f"""
target triple = "air64_v26-apple-macosx14.0.0"
{declarations}
define weak_odr void @{name}({parameters}) "frame-pointer"="all" {{
{body}
  ret void
}}
!air.kernel = !{{!0}}
!0 = {entry.replace("NAME", name)}
!1 = !{{}}
!2 = !{{{", ".join(f"!{10 + i}" for i in range(len(arguments)))}}}
{rows}
{metadata}
"""


def elementwise(name: str, operation: str, returns: str, *types: str, metadata: str = "") -> str:
    """A kernel `out[i] = operation(a[i], b[i], ...)` of an operation of AIR with these types."""
    names = "abcd"[: len(types)]
    metal = {
        "float": "float",
        "half": "half",
        "bfloat": "bfloat",
        "i8": "char",
        "i16": "short",
        "i32": "int",
        "i64": "long",
    }
    loads = [
        line
        for letter, kind in zip(names, types, strict=True)
        for line in (
            f"  %p{letter} = getelementptr {kind}, ptr addrspace(1) %{letter}, i64 %i",
            f"  %v{letter} = load {kind}, ptr addrspace(1) %p{letter}",
        )
    ]
    values = ", ".join(f"{kind} %v{letter}" for letter, kind in zip(names, types, strict=True))
    size = {"float": 4, "half": 2, "bfloat": 2, "i8": 1, "i16": 2, "i32": 4, "i64": 8}
    every = list(zip(("out", *names), (returns, *types), strict=True))
    return kernel(
        name,
        ", ".join([f"ptr addrspace(1) %{letter}" for letter, _ in every] + ["i32 %t"]),
        [buffer(n, metal.get(kind, kind), i, size=size[kind]) for i, (n, kind) in enumerate(every)]
        + [builtin("thread_position_in_grid")],
        "\n".join(
            [
                "  %i = zext i32 %t to i64",
                *loads,
                f"  %r = call {returns} @{operation}({values})",
                f"  %po = getelementptr {returns}, ptr addrspace(1) %out, i64 %i",
                f"  store {returns} %r, ptr addrspace(1) %po",
            ]
        ),
        declarations=f"declare {returns} @{operation}({', '.join(types)})",
        metadata=metadata,
    )


def bitcode(assembly: str) -> bytes:
    """A module as bitcode."""
    clang = installed()
    with tempfile.TemporaryDirectory() as folder:
        module = Path(folder) / "kernel.bc"
        # Out of the standard input: a file's name would stand in the module, which is compiled once by its content.
        done = clang.run(
            *("clang", "-cc1", "-triple", "x86_64-unknown-linux-gnu", "-disable-llvm-passes", "-emit-llvm-bc"),
            *("-Wno-override-module", "-x", "ir", "-", "-o", str(module)),
            source=assembly,
        )
        assert done.succeeded, done.stderr
        return module.read_bytes()


def air_library(folder: Path, kernels: Mapping[str, str | bytes]) -> AirLibrary:
    """A library of kernels, given as assembly or as bitcode."""
    modules = {name: bitcode(text) if isinstance(text, str) else text for name, text in kernels.items()}
    return AirLibrary(write_metal_library(folder / "kernels.metallib", modules), RELEASE)
