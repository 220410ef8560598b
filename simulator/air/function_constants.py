"""Function constants of compiled kernels: host code gives their values before a kernel is built.

A constant is a variable without a value, which `!air.function_constants` lists. Constructors of the module, which run
when the kernel is loaded, compute the values that depend on it.
"""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Sequence

from ..errors import KernelCompileError
from ..metal.function_constants import Constant

_LISTED = re.compile(
    r'^!\d+ = !\{ptr addrspace\(2\) @"?(?P<variable>[\w.$]+)"?, !"[^"]*", !"(?P<name>[^"]*)", '
    r"i32 (?P<index>\d+), i1 (?P<required>true|false)\}$",
    re.MULTILINE,
)
_VARIABLE = r'^(@"?{}"? = [^\n]*?)externally_initialized (constant (\w+)) undef'
_ASKED = r"\bcall i1 @air\.is_function_constant_defined\([^\n@]*@\"?{}\"?\)"
# In Metal source, as host code gives it: int(-3), 5u, half((1.5e+00f)).
_VALUE = re.compile(r"true|false|NAN|-?INFINITY|-?\d+(?:\.\d+)?(?:e[+-]?\d+)?")
_FLOATS = {"half": ("0xH", "e"), "float": ("0x", "f")}


def with_constants(assembly: str, constants: Sequence[Constant]) -> str:
    """The module with these values of its function constants; one without a value is zero.

    Raises:
        KernelCompileError: a constant that has no default is not given, or a value does not fit its type.
    """
    # Where reciprocals are allowed, the processor's estimate of 1 / infinity is NaN.
    assembly = re.sub(r"\bfdiv (?:fast|(?:\w+ )*arcp(?: \w+)*) (?=[<a-z])", "fdiv ", assembly)
    by_index = {constant.index: constant.value for constant in constants if constant.index >= 0}
    by_name = {constant.name: constant.value for constant in constants if constant.index < 0}
    for listed in _LISTED.finditer(assembly):
        variable, name, index = re.escape(listed["variable"]), listed["name"], int(listed["index"])
        value = by_name.get(name, by_index.get(index))
        if value is None and listed["required"] == "true":
            raise KernelCompileError(f"it needs a value of its function constant '{name}' (index {index})")

        def with_value(match: re.Match[str], name: str = name, value: str | None = value) -> str:
            return f"{match[1]}{match[2]} {_in_assembly(name, value, match[3])}"

        assembly = re.sub(_VARIABLE.format(variable), with_value, assembly, flags=re.MULTILINE)
        assembly = re.sub(_ASKED.format(variable), f"or i1 {str(value is not None).lower()}, false", assembly)
    if "call i1 @air.is_function_constant_defined" not in assembly:
        assembly = re.sub(
            r"^declare [^\n]*@air\.is_function_constant_defined\([^\n]*$", "", assembly, flags=re.MULTILINE
        )
    # An attribute group may have followed the call.
    return re.sub(r"(or i1 (?:true|false), false) #\d+", r"\1", assembly)


def _in_assembly(name: str, value: str | None, kind: str) -> str:
    if value is None:
        return "zeroinitializer"
    match = _VALUE.search(value)
    text = match[0].replace("INFINITY", "inf") if match else ""
    number = float(text == "true") if text in ("true", "false") else float(text or "nan")
    if kind in _FLOATS:
        prefix, layout = _FLOATS[kind]
        (rounded,) = struct.unpack(layout, struct.pack(layout, number))
        return prefix + struct.pack(">d" if kind == "float" else ">e", rounded).hex().upper()
    if not kind.startswith("i") or not math.isfinite(number):
        raise KernelCompileError(f"its function constant '{name}' of type {kind} cannot be {value}")
    return str(int(text) if re.fullmatch(r"-?\d+", text) else int(number))
