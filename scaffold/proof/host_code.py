"""Finds mistakes of host code that compile and link, but fail or compute wrong values at run time."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from ...simulator.clang import Diagnostic
from ...simulator.objc.comments import blanked

COALESCED = "coalesced-shape"
HOST_ADDRESS = "address-on-the-host"
# A variable that is a TensorIterator, by its type or by what it is built from.
_ITERATOR = re.compile(
    r"\bTensorIterator(?:Base)?\s*[&*]?\s+[&*]?(?P<declared>\w+)\s*[;,)={(]"
    r"|\bauto\s*&?\s*(?P<built>\w+)\s*=\s*[^;]*?\bTensorIterator(?:Config)?\b"
)
# What gives a tensor the shape that it is asked for.
_SHAPED = r"\b(?P<call>expand|view|reshape|broadcast_to|resize_|empty|zeros|ones|full|new_empty|resize_output)\s*\("

_ADDRESS = r"(?P<tensor>\w+(?:\s*\(\s*\))?)\s*(?:\.|->)\s*(?:const_|mutable_)?data_ptr\s*(?:<[^;>]*>)?\s*\(\s*\)"
_ADDRESS_VARIABLE = re.compile(rf"\b(?P<name>\w+)\s*=\s*(?:\([^()]*\*\)\s*)?{_ADDRESS}\s*;")
_USED_AT_ONCE = re.compile(
    rf"{_ADDRESS}\s*\[|(?<![\w)\]])\s\*\s*{_ADDRESS.replace('tensor', 'other')}"
    rf"|(?:\b(?:memcpy|memmove|memset|copy_n)\s*\(|\bnewBufferWithBytes(?:NoCopy)?:)[^;]*?"
    rf"{_ADDRESS.replace('tensor', 'copied')}"
)
# A tensor that is on the CPU, as its initializer says: a copy, or a new one without a device.
_COPIED_TO_CPU = re.compile(r"\b(\w+)\s*=(?=[^;]*(?:\bcpu\s*\(\s*\)|\bkCPU\b|\bDeviceType::CPU\b))")
_MADE_ON_CPU = re.compile(
    r"\b(\w+)\s*=\s*(?:at|torch)::(?:empty|zeros|ones|full|tensor|arange)\s*\((?![^;]*(?:\bdevice|\boptions\s*\(|MPS))"
)
# A branch on the device of a tensor.
_DEVICE_CHECK = re.compile(r"\bif\s*\([^;{}]*?\b(\w+)\s*(?:\.|->)\s*(?:is_mps|is_cpu|device)\s*\(")


def check_host_code(path: Path, text: str) -> list[Diagnostic]:
    """Findings for one file of C++ or Objective-C++."""
    code = blanked(text)
    findings = list(_coalesced_shapes(path, code, text))
    return findings if path.suffix != ".mm" else [*findings, *_addresses_on_the_host(path, code)]


def _coalesced_shapes(path: Path, code: str, text: str) -> Iterator[Diagnostic]:
    """A TensorIterator coalesces and reorders dimensions when it is built: for tensors of 5x5 its shape is 25."""
    names = {match["declared"] or match["built"] for match in _ITERATOR.finditer(code)}
    for name in sorted(names):
        used = re.compile(rf"{_SHAPED}(?:[^;()]|\([^;()]*\)|\()*?\b{name}\s*(?:\.|->)\s*shape\s*\(\s*\)")
        for match in used.finditer(code):
            line = text.count("\n", 0, match.start()) + 1
            column = match.start() - text.rfind("\n", 0, match.start())
            yield Diagnostic(
                str(path),
                line,
                column,
                "error",
                f"{match['call']}(... {name}.shape() ...): a TensorIterator joins dimensions when it is built, so that "
                "its shape is not that of the operands; use the sizes of the output",
                COALESCED,
            )


def _addresses_on_the_host(path: Path, code: str) -> Iterator[Diagnostic]:
    """Code that follows `data_ptr()` of a tensor which may be on mps: there it is an MTLBuffer."""
    on_cpu = {"cpu()", *_COPIED_TO_CPU.findall(code), *_MADE_ON_CPU.findall(code)}
    uses: dict[int, str] = {}
    for use in _USED_AT_ONCE.finditer(code):
        groups = use.groupdict()
        tensor = groups["tensor"] or groups["other"] or groups["copied"]
        uses[use.start("tensor" if groups["tensor"] else "other" if groups["other"] else "copied")] = tensor
    for variable in _ADDRESS_VARIABLE.finditer(code):
        name = re.escape(variable["name"])
        followed = re.search(rf"\b{name}\s*\[|[=(,;{{]\s*\*\s*{name}\b", code[variable.end() :])
        if followed:
            uses[variable.start("tensor")] = variable["tensor"]
    for start, tensor in sorted(uses.items()):
        function = code[code.rfind("\n}", 0, start) + 1 : start]
        if "".join(tensor.split()) in {*on_cpu, *_DEVICE_CHECK.findall(function)}:
            continue
        yield Diagnostic(
            str(path),
            code.count("\n", 0, start) + 1,
            start - code.rfind("\n", 0, start),
            "warning",
            f"the host follows {tensor}.data_ptr(): of a tensor on mps that is an MTLBuffer, so a Mac reads garbage or"
            " crashes where the simulated device gives right values; copy the tensor with .cpu(), or bind its buffer"
            " to a kernel",
            HOST_ADDRESS,
        )
