"""Writes findings as one program for a Mac that needs only torch and confirms or refutes each finding."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

from ...audit.shipped.finding_result import FindingResult
from ...registry.found_wrong import FoundWrong
from ...registry.known_case import SliceInput, TensorInput, TorchInput, TupleInput, View, plain_value

PROGRAM = '''\
"""Wrong results of the Metal kernels that torch {release} ships, as mpsmith found them on Linux, without a Mac.

Run it on a Mac with torch {release}: python THIS_FILE. Each line says whether the Mac gives the same.
"""

import torch

inf, nan = float("inf"), float("nan")


def bits(value):
    parts = torch.view_as_real(value) if value.is_complex() else value.reshape(1)
    stored, size = bytes(parts.contiguous().view(torch.uint8).tolist()), parts.element_size()
    return " ".join("0x" + stored[i : i + size][::-1].hex() for i in range(0, len(stored), size))


def element(result, output, index):
    flat = list(result) if isinstance(result, (tuple, list)) else [result]
    return flat[output].detach().cpu().flatten()[index]


def verdict(call, output, index, seen, is_nan):
    try:
        cpu = element(call("cpu"), output, index)
        mac = element(call("mps"), output, index)
    except Exception as error:
        return "NOT TRIED: " + type(error).__name__ + ": " + str(error)
    mac_bits = bits(mac)
    values = f"the Mac {mac.item()} ({mac_bits}), the CPU {cpu.item()}, the kernel on Linux {seen}"
    if mac_bits == seen or (is_nan and bool(torch.isnan(mac))):
        return "CONFIRMED: " + values
    if torch.isclose(mac, cpu, rtol=1e-4, atol=0.0, equal_nan=True):
        return "REFUTED: " + values
    return "WRONG, BUT OTHERWISE: " + values


# Name, call on a device, output and its element with the largest error, the kernel's bits on Linux, whether NaN.
FOUND = [
@FINDINGS@
]

if __name__ == "__main__":
    print("torch", torch.__version__)
    for name, *found in FOUND:
        print(name + ":", verdict(*found))
'''


def script_of(release: str, findings: Mapping[str, FoundWrong], results: Sequence[FindingResult]) -> str:
    """The program, with the findings that came out wrong."""
    rows = [_row(findings[result.name], result) for result in results if result.is_wrong]
    return PROGRAM.replace("{release}", release).replace("@FINDINGS@", "\n".join(rows))


def _row(finding: FoundWrong, result: FindingResult) -> str:
    place = result.place
    output, index, seen = (place.number, place.index, place.given_bits) if place else (0, 0, "a read out of bounds")
    is_nan = place is not None and "nan" in place.given
    return f"    ({finding.name!r}, lambda device: {call_text(finding)}, {output}, {index}, {seen!r}, {is_nan}),"


def call_text(finding: FoundWrong) -> str:
    """The call of a finding as Python, its tensors on `device`."""
    case = finding.case
    written = [_text(value) for value in case.args]
    written += [f"{name}={_text(value)}" for name, value in case.kwargs.items()]
    if case.form == "out":
        outs = [_tensor(out) for out in case.out]
        written.append(f"out={outs[0] if len(outs) == 1 else '(' + ', '.join(outs) + ')'}")
    call = f"{case.call}({', '.join(written)})"
    if case.form != "backward":
        return call
    return f"gradients({call})"


def _text(value: Any) -> str:
    if isinstance(value, TensorInput):
        return _tensor(value)
    if isinstance(value, SliceInput):
        return f"slice{value.slice!r}"
    if isinstance(value, TorchInput):
        return f"torch.{value.torch}"
    if isinstance(value, TupleInput):
        return "(" + "".join(f"{_text(item)}, " for item in value.tuple) + ")"
    return "[" + ", ".join(map(_text, value)) + "]" if isinstance(value, list) else _plain(plain_value(value))


def _plain(value: Any) -> str:
    """A value as Python; inf and nan are names in the program, and a complex number keeps the signs of its zeros."""
    return f"complex({value.real!r}, {value.imag!r})" if isinstance(value, complex) else repr(value)


def _tensor(described: TensorInput) -> str:
    options = f"dtype=torch.{described.dtype}, device=device"
    shape = described.shape
    if described.values is not None:
        text = f"torch.tensor({_values(described.values)}, {options})"
        if shape is not None:
            count = max(1, len(described.values))
            size = prod(shape)
            text += f".repeat({-(-size // count)})[:{size}]" if size != count else ""
            text += f".reshape({shape!r})" if len(shape) != 1 else ""
    elif described.fill == "arange":
        text = f"torch.arange({prod(shape or ())}, device=device).reshape({shape!r}).to(torch.{described.dtype})"
    else:
        number = {"zeros": 0, "ones": 1, None: 0}.get(described.fill, described.fill)
        text = f"torch.full({shape!r}, {number}, {options})"
    return text + "".join(map(_view, described.views)) + (".requires_grad_()" if described.requires_grad else "")


def _values(value: Any) -> str:
    return "[" + ", ".join(map(_values, value)) + "]" if isinstance(value, list) else _plain(plain_value(value))


def _view(view: View) -> str:
    name, value = view.step
    if name in ("transpose", "select", "permute", "expand", "reshape", "as_strided"):
        return f".{name}({', '.join(map(repr, value))})"
    if name == "slice":
        dim, start, stop, step = value
        return f"[{':, ' * dim}{start if start is not None else ''}:{stop if stop is not None else ''}:{step}]"
    if name == "memory_format":
        return f".contiguous(memory_format=torch.{value})"
    return f".unsqueeze({value})" if name == "unsqueeze" else f"._{name}_view()" if name == "neg" else ".conj()"
