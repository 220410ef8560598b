"""C++ entry points of kernels: the function that the driver launches, and a table of its buffers."""

from __future__ import annotations

import re

from ..errors import PtxError
from ..metal.entries import EntryPoint

ENTRY = "nvidia_entry_point"
_TABLE = "nvidia_buffers"
_TABLE_TEXT = re.compile(rf"\b{_TABLE}\[\d+\] = \{{(?P<values>[^}}]*)\}}")
_BYTES_TEXT = re.compile(rf"\.b8 {_TABLE}\[")


def unit(body: str, kernel: EntryPoint) -> str:
    """The C++ unit of a kernel of the program `body`.

    Raises:
        PtxError: the kernel has a threadgroup argument, whose length compile_shader cannot set.
    """
    function_type = f"void F{kernel.signature}" if kernel.signature else f"decltype({kernel.function}) F"
    formal: list[str] = []
    values: list[str] = []
    rows: list[str] = []
    for position, argument in enumerate(kernel.arguments):
        parameter = f"metal::msl_argument<{position}, nvidia_entry::F>::type"
        if argument.kind == "threadgroup":
            raise PtxError(f"[[threadgroup({argument.index})]] needs a length, which compile_shader cannot set")
        if argument.kind == "builtin":
            values.append(f"metal::msl_builtin<{parameter}>(nvidia_here.{argument.builtin}())")
        else:
            formal.append(f"void* buffer_{position}")
            values.append(f"metal::nvidia_binding<{parameter}>::bind(buffer_{position})")
            binding = f"metal::nvidia_binding<{parameter}>"
            rows.append(f"{argument.index}u, {binding}::size, {binding}::writable")
    table = ", ".join([*rows, "~0u"])
    return (
        '#pragma clang force_cuda_host_device begin\n#include "nvidia/kernel.h"\n'
        f'{body}\n# {kernel.location.line} "{kernel.location.file}"\n'
        f"namespace nvidia_entry {{ typedef {function_type}; }}"
        f' extern "C" {{ extern __attribute__((device, used)) const uint {_TABLE}[] = {{{table}}}; }}'
        f' extern "C" __attribute__((global)) void {ENTRY}({", ".join([*formal, "const nvidia_launch nvidia_given"])})'
        f" {{ metal::nvidia_thread nvidia_here{{nvidia_given}}; if (nvidia_here.outside()) return;"
        f" {kernel.function}({', '.join(values)}); }}\n"
        "#pragma clang force_cuda_host_device end\n"
    )


def buffer_table(ptx: str) -> dict[int, tuple[int, bool]]:
    """By buffer index: the bytes that a reference reads (0 for a pointer), and whether the kernel may write."""
    match = _TABLE_TEXT.search(ptx)
    assert match is not None, "the entry point of a unit has a table"
    numbers = [int(value) for value in match["values"].split(",")]
    if _BYTES_TEXT.search(ptx):
        data = bytes(numbers)
        numbers = [int.from_bytes(data[i : i + 4], "little") for i in range(0, len(data), 4)]
    rows = [numbers[i : i + 3] for i in range(0, len(numbers) - 1, 3)]
    return {index: (size, bool(writable)) for index, size, writable in rows}
