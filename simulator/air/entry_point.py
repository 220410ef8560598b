"""The function through which the scheduler runs a kernel: a loop over a row of a threadgroup, in LLVM assembly."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..errors import MalformedKernelError, UnsupportedKernelError
from .llvm_text import symbol, vector_type
from .signature import BufferArgument, BuiltinArgument, KernelSignature

ENTRY = "air_kernel"
"""The suffix of the kernel's symbols for the scheduler: msl_run_, msl_parameters_ and msl_sections_."""

FIRST_THREADGROUP_SLOT = 32
"""The first slot for threadgroup memory in the table of addresses, after all buffers."""

_GROUP_BYTES = 72  # struct Group of simulator/metal/runtime/runtime.h, and the offset of its table of addresses
_TABLE_OFFSET = 64

# The functions of runtime/positions.cpp.
BUILTINS = frozenset(
    {
        *("thread_position_in_grid", "thread_position_in_threadgroup", "threadgroup_position_in_grid"),
        *("threads_per_threadgroup", "dispatch_threads_per_threadgroup", "threadgroups_per_grid", "threads_per_grid"),
        *("thread_index_in_threadgroup", "thread_index_in_simdgroup", "simdgroup_index_in_threadgroup"),
        *("simdgroups_per_threadgroup", "dispatch_simdgroups_per_threadgroup", "threads_per_simdgroup"),
        "thread_execution_width",
    }
)


@dataclass(frozen=True)
class EntryFunction:
    """The assembly of the function, and the declarations that it needs."""

    text: str
    declarations: frozenset[str]


@dataclass(frozen=True)
class _ParameterCode:
    """The instructions for a parameter before the loop and in it, and the operand with its value."""

    before: Sequence[str]
    in_loop: Sequence[str]
    operand: str
    declarations: frozenset[str] = frozenset()


def entry_point(name: str, parameters: Sequence[str], signature: KernelSignature) -> EntryFunction:
    """The entry point of the kernel `name`, whose parameters have these types.

    Raises:
        MalformedKernelError: the signature describes other parameters.
        UnsupportedKernelError: the kernel asks for an unknown builtin.
    """
    arguments = signature.arguments
    if len(arguments) != len(parameters):
        raise MalformedKernelError(f"it has {len(parameters)} parameters and describes {len(arguments)}")
    codes = [_parameter_code(kind, argument) for kind, argument in zip(parameters, arguments, strict=True)]
    before = "\n".join(f"  {line}" for code in codes for line in code.before)
    each_thread = "\n".join(f"  {line}" for code in codes for line in code.in_loop)
    operands = ", ".join(f"{kind} {code.operand}" for kind, code in zip(parameters, codes, strict=True))
    table = [
        f"[5 x i32] [i32 {b.index}, i32 {b.size}, i32 0, i32 {int(b.writable)}, i32 {max(1, b.alignment)}]"
        for b in signature.buffers
    ]
    rows = f"[{len(table)} x [5 x i32]]"
    text = f"""
@__start_msl_shared = extern_weak hidden global i8
@__stop_msl_shared = extern_weak hidden global i8
@__start_msl_variables = extern_weak hidden global i8
@__stop_msl_variables = extern_weak hidden global i8
@air_parameters = internal constant {rows} [{", ".join(table)}]
define ptr @msl_parameters_{ENTRY}(ptr %count) {{
  store i32 {len(table)}, ptr %count
  ret ptr @air_parameters
}}
define void @msl_sections_{ENTRY}(ptr %sections) {{
  %shared.end = getelementptr ptr, ptr %sections, i64 1
  %variables = getelementptr ptr, ptr %sections, i64 2
  %variables.end = getelementptr ptr, ptr %sections, i64 3
  store ptr @__start_msl_shared, ptr %sections
  store ptr @__stop_msl_shared, ptr %shared.end
  store ptr @__start_msl_variables, ptr %variables
  store ptr @__stop_msl_variables, ptr %variables.end
  ret void
}}
define void @msl_run_{ENTRY}(ptr %group, i32 %begin, i32 %end, i32 %y, i32 %z) {{
entry:
  %g = alloca [{_GROUP_BYTES} x i8], align 8
  call void @llvm.memcpy.p0.p0.i64(ptr align 8 %g, ptr align 8 %group, i64 {_GROUP_BYTES}, i1 false)
  %table.place = getelementptr i8, ptr %g, i64 {_TABLE_OFFSET}
  %table = load ptr, ptr %table.place
{before}
  br label %loop
loop:
  %x = phi i32 [ %begin, %entry ], [ %next, %loop ]
{each_thread}
  call void {symbol(name)}({operands})
  %next = add i32 %x, 1
  %more = icmp ult i32 %next, %end
  br i1 %more, label %loop, label %done
done:
  ret void
}}
"""
    memcpy = "declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)"
    return EntryFunction(text, frozenset({memcpy}).union(*(code.declarations for code in codes)))


def _parameter_code(kind: str, argument: BufferArgument | BuiltinArgument) -> _ParameterCode:
    if isinstance(argument, BufferArgument):
        return _buffer(kind, argument)
    return _builtin(kind, argument)


def _buffer(kind: str, argument: BufferArgument) -> _ParameterCode:
    if not kind.startswith("ptr"):
        raise MalformedKernelError(f"its buffer {argument.name} is passed as {kind}")
    at = argument.position
    slot = argument.index + (FIRST_THREADGROUP_SLOT if argument.is_threadgroup else 0)
    before = (
        f"%place.{at} = getelementptr i64, ptr %table, i64 {slot}",
        f"%address.{at} = load i64, ptr %place.{at}",
        f"%buffer.{at} = inttoptr i64 %address.{at} to {kind}",
    )
    return _ParameterCode(before, (), f"%buffer.{at}")


def _builtin(kind: str, argument: BuiltinArgument) -> _ParameterCode:
    lines, operand = builtin_value(kind, argument, "ptr %g, i32 %x, i32 %y, i32 %z")
    declaration = f"declare i32 @airrt_{argument.kind}(ptr, i32, i32, i32, i32)"
    return _ParameterCode((), lines, operand, frozenset({declaration}))


def builtin_value(kind: str, argument: BuiltinArgument, position: str) -> tuple[list[str], str]:
    """Instructions for the value of a builtin in the type `kind`, and the operand with it.

    The runtime function of the builtin takes the arguments `position` and the dimension, and returns 32 bits.

    Raises:
        UnsupportedKernelError: there is no such builtin, or not in this type.
    """
    width, element = vector_type(kind)
    if argument.kind not in BUILTINS or element not in ("i16", "i32") or width > 3:
        raise UnsupportedKernelError(f"it asks for {argument.kind} as {kind}")
    at = argument.position
    lines: list[str] = []
    parts: list[str] = []
    for d in range(max(width, 1)):
        part = f"%builtin.{at}.{d}"
        lines.append(f"{part} = call i32 @airrt_{argument.kind}({position}, i32 {d})")
        if element == "i16":
            lines.append(f"{part}.narrow = trunc i32 {part} to i16")
            part += ".narrow"
        parts.append(part)
    operand = parts[0]
    if width:
        operand = "poison"
        for d, part in enumerate(parts):
            lines.append(f"%vector.{at}.{d} = insertelement {kind} {operand}, {element} {part}, i64 {d}")
            operand = f"%vector.{at}.{d}"
    return lines, operand
