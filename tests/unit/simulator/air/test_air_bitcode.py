from __future__ import annotations

import struct
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mpsmith.audit.releases.wheel.shipped import shipped_library
from mpsmith.simulator.air.bitcode import metadata_of_bitcode, signature_of_bitcode
from mpsmith.simulator.air.compiler import default_air_compiler
from mpsmith.simulator.air.container import LibraryFile
from mpsmith.simulator.air.signature import KernelSignature, kernel_signature
from mpsmith.simulator.errors import AirError, MalformedKernelError
from support.air_kernels import FLUSHING, bitcode, buffer, builtin, kernel
from support.assembly_metadata import metadata_of_text

PARAMETERS = ('!"air.struct_type_info", !50, !"air.buffer_size", i32 24', '!"air.arg_unused"')
# A global and a function in front of the constants, numbers of several widths and signs, a struct in a struct.
SOURCE = kernel(
    "scale_float",
    "ptr addrspace(1) %out, ptr addrspace(2) %p, ptr addrspace(2) %unused, <2 x i32> %t",
    [
        buffer("out", "float", 0),
        buffer("params", "Params", 3, PARAMETERS[0], space="constant", size=24),
        buffer("unused", "long", 30, PARAMETERS[1], space="constant"),
        builtin("thread_position_in_grid", "uint2"),
    ],
    "  %v = load float, ptr addrspace(2) @table\n  store float %v, ptr addrspace(1) %out",
    declarations="@table = internal addrspace(2) constant [2 x float] [float 1.0, float 2.0]\n"
    "declare float @air.exp.f32(float)\n",
    metadata='!50 = !{i32 0, i32 8, i32 0, !"long", !"size", !"air.struct_type_info", !51, '
    'i32 8, i32 4, i32 2, !"Pair", !"pairs"}\n'
    '!51 = !{i32 0, i32 4, i32 0, !"float", !"first"}\n'
    '!60 = !{!"air.max_work_group_size", i32 256}\n'
    "!other = !{!61}\n"
    '!61 = distinct !{i32 -7, i64 70000000000, i1 true, null, !"", !60}\n' + FLUSHING,
    entry="!{ptr @NAME, !1, !2, !60}",
)


@pytest.fixture(scope="module")
def module() -> bytes:
    return bitcode(SOURCE)


def of_text(name: str) -> KernelSignature:
    return kernel_signature(metadata_of_text(SOURCE), name)


def test_bitcode_agrees_with_its_assembly(module: bytes) -> None:
    signature = signature_of_bitcode(module, "scale_float")
    assert signature == of_text("scale_float")
    assert signature.max_threads == 256
    assert signature.flush_denormals
    (params,) = [argument for argument in signature.buffers if argument.name == "params"]
    assert [(f.name, f.offset, f.array_length) for f in params.fields] == [("size", 0, 0), ("pairs", 8, 2)]
    assert [f.name for f in params.fields[1].fields] == ["first"]


def test_numbers_of_every_kind(module: bytes) -> None:
    (node,) = metadata_of_bitcode(module).named("other")
    assert node[:5] == (-7, 70000000000, -1, None, "")
    assert metadata_of_bitcode(module).node(node[5]) == ("air.max_work_group_size", 256)


def test_the_wrapper_of_apples_tools_is_taken_off(module: bytes) -> None:
    wrapped = struct.pack("<5I", 0x0B17C0DE, 0, 20, len(module), 0) + module + b"padding"
    assert signature_of_bitcode(wrapped, "scale_float") == of_text("scale_float")
    with pytest.raises(MalformedKernelError, match="ends too early"):
        signature_of_bitcode(wrapped[:-20], "scale_float")


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "not LLVM bitcode"),
        (b"define void @f() {}", "not LLVM bitcode"),
        (b"BC\xc0\xde", "has no module"),
        (b"BC\xc0\xde" + b"\xff" * 40, "has data between blocks"),
        (b"BC\xc0\xde" + struct.pack("<2I", 0b1 | 8 << 2 | 3 << 10, 1 << 31), "ends too early"),
        (b"BC\xc0\xde" + struct.pack("<3I", 0b1 | 8 << 2 | 3 << 10, 1, 7), "was not defined"),
    ],
)
def test_rejects_invalid_bitcode(data: bytes, message: str) -> None:
    with pytest.raises(MalformedKernelError, match=message):
        metadata_of_bitcode(data)


def test_a_module_that_ends_early_is_refused(module: bytes) -> None:
    for size in range(0, len(module) // 2, 7):
        with pytest.raises(MalformedKernelError):
            signature_of_bitcode(module[:size], "scale_float")


@settings(max_examples=400, deadline=None)
@given(data=st.data())
def test_a_damaged_module_gives_an_error_or_a_signature(data: st.DataObject, module: bytes) -> None:
    broken = bytearray(module)
    for _ in range(data.draw(st.integers(1, 4))):
        broken[data.draw(st.integers(0, len(broken) - 1))] = data.draw(st.integers(0, 255))
    with suppress(AirError):
        assert signature_of_bitcode(bytes(broken), "scale_float").name == "scale_float"


@pytest.mark.network
@pytest.mark.parametrize("release", ["2.6.0", "2.10.0", "2.15.0"])
def test_shipped_kernels_are_read_as_llvm_reads_them(release: str) -> None:
    library, compiler = LibraryFile(shipped_library(release)), default_air_compiler()
    for name in library.names[:: len(library.names) // 20]:
        assembly = compiler.disassemble(library.bitcode(name))
        expected = kernel_signature(metadata_of_text(assembly), name)
        assert signature_of_bitcode(library.bitcode(name), name) == expected
