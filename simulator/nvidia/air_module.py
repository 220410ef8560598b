"""Turns an AIR module into one for the GPU: defines operations, adds an entry point for the driver."""

from __future__ import annotations

import re

from ..air.entry_point import builtin_value
from ..air.host_module import ASSEMBLER, DECLARATION, parameter_types, with_operations
from ..air.intrinsics import PLAIN
from ..air.llvm_text import symbol
from ..air.signature import BufferArgument, BuiltinArgument, KernelSignature
from ..errors import MalformedKernelError, UnsupportedKernelError
from .air_atomics import with_atomics
from .entry_point import ENTRY

_NUMBERS = 12  # fields of struct nvidia_launch
# Attributes for Apple's target, which do not fit NVPTX.
_FOREIGN = re.compile(
    r'"(?:no-builtins|min-legal-vector-width|stack-protector-buffer-size|frame-pointer|target-cpu|target-features)"'
    r'(?:="[^"]*")? ?'
)
_FLUSHES = '"denormal-fp-math-f32"="preserve-sign,preserve-sign"'


def gpu_module(assembly: str, name: str, signature: KernelSignature) -> str:
    """The module of a kernel with an entry point for the driver.

    It takes the buffers in the order of the kernel's parameters, then struct nvidia_launch, then the offset of each
    threadgroup argument.

    Raises:
        MalformedKernelError: the kernel's function is missing, or does not match its signature.
        UnsupportedKernelError: it uses an operation that is not implemented for the GPU.
    """
    if ASSEMBLER.search(assembly):
        raise UnsupportedKernelError("it contains inline assembly, which Apple's kernels never do")
    parameters = parameter_types(assembly, name)
    text, definitions, needed = with_operations(with_atomics(assembly), PLAIN)
    text = "\n".join([text, *definitions]).replace("addrspace(2)", "addrspace(1)")
    entry, called = _entry_point(name, parameters, signature)
    present = {match["name"] for match in DECLARATION.finditer(text)}
    declared = [d for d in sorted(needed | called) if _name_of(d) not in present]
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
    """The function that the driver launches, and the declarations that it needs."""
    arguments = signature.arguments
    if len(arguments) != len(parameters):
        raise MalformedKernelError(f"it has {len(parameters)} parameters and describes {len(arguments)}")
    formal: list[str] = []
    lengths: list[str] = []
    lines: list[str] = []
    operands: list[str] = []
    called = {"declare i1 @airrt_outside(ptr)"}
    for kind, argument in zip((parameter.replace("(2)", "(1)") for parameter in parameters), arguments, strict=True):
        at = argument.position
        if isinstance(argument, BuiltinArgument):
            code, operand = builtin_value(kind, argument, "ptr %launch")
            lines += code
            called.add(f"declare i32 @airrt_{argument.kind}(ptr, i32)")
            operands.append(f"{kind} {operand}")
        elif argument.is_threadgroup:
            lengths.append(f"i32 %offset.{at}")
            lines.append(f"%shared.{at} = getelementptr i8, ptr addrspace(3) @airrt_shared, i32 %offset.{at}")
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
