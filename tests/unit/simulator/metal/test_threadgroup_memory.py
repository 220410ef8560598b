"""How much threadgroup memory a kernel takes, and how much there is."""

from __future__ import annotations

import pytest

from mpsmith.simulator import metal
from mpsmith.simulator.metal import MetalRuntimeError
from support.needs import needs_metal_on_host

needs_metal_on_host()

PREAMBLE = "#include <metal_stdlib>\nusing namespace metal;\n"


def length(*declarations: str) -> int:
    """Bytes that a kernel with these threadgroup variables takes."""
    variables = " ".join(f"threadgroup {declaration};" for declaration in declarations)
    names = [declaration.split()[1].split("[")[0] for declaration in declarations]
    used = " ".join(f"((threadgroup char*){name})[i] = i; out[i] += ((threadgroup char*){name})[i];" for name in names)
    body = f"{variables} {used}"
    source = f"{PREAMBLE}kernel void k(device char* out, uint i [[thread_position_in_threadgroup]]) {{ {body} }}"
    return int(metal.compile(source).k.static_thread_group_memory_length)


@pytest.mark.parametrize(
    ("declarations", "expected"),
    [
        ((), 0),
        (("float a[4]",), 16),
        (("char a[1]",), 16),
        (("float a[5]",), 32),
        (("char a[17]",), 32),
        (("char a[1]", "char b[1]"), 32),
        (("float a[5]", "half b[9]", "float4 c[2]"), 96),
    ],
    ids=str,
)
def test_each_variable_takes_a_multiple_of_sixteen_bytes(declarations: tuple[str, ...], expected: int) -> None:
    assert length(*declarations) == expected


def test_32_kib_are_there_and_no_byte_more() -> None:
    assert length("char a[32768]") == 32768
    with pytest.raises(MetalRuntimeError, match="32784 bytes of threadgroup memory"):
        length("char a[32768]", "char b[1]")
    with pytest.raises(MetalRuntimeError, match="32784 bytes of threadgroup memory"):
        length("char a[32769]")
