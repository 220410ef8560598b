"""An AIR module made into one for the GPU: operations defined, an entry point for the driver added."""

from __future__ import annotations

import re

from ..air.entry_point import BUILTINS
from ..air.errors import MalformedKernelError, UnsupportedKernelError
from ..air.host_module import ASSEMBLER, DECLARATION, parameter_types, with_operations
from ..air.intrinsics import PLAIN
from ..air.llvm_text import symbol, vector_type
from ..air.signature import BufferArgument, BuiltinArgument, KernelSignature
from .air_atomics import with_atomics
from .entry_point import ENTRY

_NUMBERS = 12  # of struct nvidia_launch
# What Apple's compiler says of its own target; NVPTX has other ideas of these.
_FOREIGN = re.compile(
    r'"(?:no-builtins|min-legal-vector-width|stack-protector-buffer-size|frame-pointer|target-cpu|target-features)"'
    r'(?:="[^"]*")? ?'
)
_FLUSHES = '"denormal-fp-math-f32"="preserve-sign,preserve-sign"'


def gpu_module(assembly: str, name: str, signature: KernelSignature) -> str:
    """The module of a kernel with an entry point for the driver.

    It takes the buffers in the order of the kernel's parameters, then struct nvidia_launch, then the place of each
    argument that is memory of the threadgroup.

    Raises:
        MalformedKernelError: the kernel's function is not there, or is not what its signature says.
        UnsupportedKernelError: it needs an operation that the GPU has no code for.
    """
    if ASSEMBLER.search(assembly):
        raise UnsupportedKernelError("it holds instructions of a processor, as no kernel of Apple's does")
    parameters = parameter_types(assembly, name)
    text, definitions, wanted = with_operations(with_atomics(assembly), PLAIN)
    text = "\n".join([text, *definitions]).replace("addrspace(2)", "addrspace(1)")
    entry, called = _entry_point(name, parameters, signature)
    present = {match["name"] for match in DECLARATION.finditer(text)}
    declared = [each for each in sorted(wanted | called) if _name_of(each) not in present]
    kernel = re.escape(symbol(name))
    head = re.compile(
        rf"^define (?:weak_odr |dso_local )*(?P<head>[^\n]*{kernel}\([^\n]*?) ?(?P<rest>(?:#\d+ )?\{{)$", re.MULTILINE
    )
    text = head.sub(r"define internal \g<head> alwaysinline \g<rest>", text)
    text = "\n".join([text, *declared, entry]).replace("@llvm.ldexp.f32.i32(", "@ldexpf(")
    text = re.sub(r"^attributes [^\n]*$", lambda match: _FOREIGN.sub("", match[0]), text, flags=re.MULTILINE)
    if signature.flush_denormals:
        text = re.sub(r"^(attributes #\d+ = \{)", rf"\1 {_FLUSHES}", text, flags=re.MULTILINE)
    return text


def _name_of(declaration: str) -> str:
    match = DECLARATION.match(declaration)
    return match["name"] if match else declaration


def _entry_point(name: str, parameters: list[str], signature: KernelSignature) -> tuple[str, set[str]]:
    """The function that the driver launches, and the declarations of what it calls."""
    arguments = signature.arguments
    if len(arguments) != len(parameters):
        raise MalformedKernelError(f"it has {len(parameters)} parameters and describes {len(arguments)}")
    formal: list[str] = []
    lengths: list[str] = []
    lines: list[str] = []
    operands: list[str] = []
    called = {"declare i1 @airrt_outside(ptr)"}
    for kind, argument in zip((each.replace("(2)", "(1)") for each in parameters), arguments, strict=True):
        at = argument.position
        if isinstance(argument, BuiltinArgument):
            lines += _builtin(kind, argument)
            called.add(f"declare i32 @airrt_{argument.kind}(ptr, i32)")
            operands.append(f"{kind} %value.{at}")
        elif argument.is_threadgroup:
            lengths.append(f"i32 %place.{at}")
            lines.append(f"%shared.{at} = getelementptr i8, ptr addrspace(3) @airrt_shared, i32 %place.{at}")
            operands.append(f"{kind} %shared.{at}")
        else:
            formal.append(f"{_checked(kind, argument)} %buffer.{at}")
            operands.append(f"{kind} %buffer.{at}")
    launch = f"ptr byval([{_NUMBERS} x i32]) align 4 %launch"
    body = "\n".join(f"  {line}" for line in lines)
    text = f"""
@airrt_shared = external addrspace(3) global [0 x i8], align 16
define ptx_kernel void @{ENTRY}({", ".join([*formal, launch, *lengths])}) {{
  %outside = call i1 @airrt_outside(ptr %launch)
  br i1 %outside, label %done, label %run
run:
{body}
  call void {symbol(name)}({", ".join(operands)})
  br label %done
done:
  ret void
}}
"""
    return text, called


def _checked(kind: str, argument: BufferArgument) -> str:
    if not kind.startswith("ptr"):
        raise MalformedKernelError(f"its buffer {argument.name} is passed as {kind}")
    return kind


def _builtin(kind: str, argument: BuiltinArgument) -> list[str]:
    """The value in 32 bits for each dimension, narrowed and put together as the parameter asks."""
    width, element = vector_type(kind)
    if argument.kind not in BUILTINS or element not in ("i16", "i32") or width > 3:
        raise UnsupportedKernelError(f"it asks for {argument.kind} as {kind}")
    at = argument.position
    lines: list[str] = []
    vector = "poison"
    for d in range(max(width, 1)):
        part = f"%part.{at}.{d}"
        lines.append(f"{part}.wide = call i32 @airrt_{argument.kind}(ptr %launch, i32 {d})")
        narrowed = f"trunc i32 {part}.wide to i16" if element == "i16" else f"add i32 {part}.wide, 0"
        scalar = part if width else f"%value.{at}"
        lines.append(f"{scalar} = {narrowed}")
        if width:
            target = f"%value.{at}" if d == width - 1 else f"%vector.{at}.{d}"
            lines.append(f"{target} = insertelement {kind} {vector}, {element} {part}, i64 {d}")
            vector = target
    return lines
