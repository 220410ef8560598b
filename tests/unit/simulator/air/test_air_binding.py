"""A launch's arguments by name: what is taken, what bytes it becomes, and what is refused."""

from __future__ import annotations

import ctypes
import math
import struct

import pytest
import torch

from mpsmith.simulator.air.binding import bind
from mpsmith.simulator.air.packing import pack_struct, pack_values
from mpsmith.simulator.air.signature import BufferArgument, KernelSignature, StructField
from mpsmith.simulator.errors import KernelArgumentError


def argument(name: str, type_name: str, index: int, size: int, **more: object) -> BufferArgument:
    given = {
        **{"position": index, "index": index, "name": name, "type_name": type_name, "size": size, "alignment": size},
        **{"access": "read", "used": True, "address_space": 2, "by_reference": False, "indirect": False, "fields": ()},
    }
    return BufferArgument(**{**given, **more})  # type: ignore[arg-type]


ARRAY = StructField("n", "metal::array", 8, 12, 0, fields=(StructField("__elems", "uint", 0, 4, 3),))
HALVES = (StructField("a", "half", 0, 2, 0), StructField("b", "short", 2, 2, 0))
INNER = StructField("inner", "Inner", 20, 4, 0, fields=HALVES)
ADDRESSES = (StructField("__elems", "float", 0, 8, 2, is_pointer=True),)
POINTERS = StructField("p", "metal::array", 24, 16, 0, fields=ADDRESSES)
PARAMS = (StructField("x", "float", 0, 4, 0), ARRAY, INNER, POINTERS)

SIGNATURE = KernelSignature(
    name="k",
    buffers=(
        argument("out", "float", 0, 4, access="read_write", address_space=1),
        argument("size", "uint", 1, 4, by_reference=True),
        argument("params", "Params", 2, 40, by_reference=True, fields=PARAMS),
        argument("spare", "long", 3, 8, used=False),
        argument("any", "void", 4, 0, used=False),
    ),
    threadgroup_buffers=(),
    builtins=(),
    max_threads=None,
    flush_denormals=True,
)


def arguments(**values: object) -> dict[str, object]:
    return {"out": torch.zeros(4), "size": 4, "params": {}, **values}


def content(values: dict[str, object], index: int) -> bytes:
    buffer = bind(SIGNATURE, values).buffers[index]
    return ctypes.string_at(buffer.address, buffer.available)


REFUSED = [
    ({"outt": torch.zeros(4)}, "has no argument outt: its arguments are out, size, params, spare, any"),
    ({"out": torch.zeros(4, dtype=torch.int32)}, r"argument out \(float\): a tensor of torch.int32 is bound to it"),
    ({"out": torch.zeros(4, dtype=torch.float16)}, "a tensor of torch.float16 is bound to it"),
    ({"size": 1.5}, r"argument size \(uint\): 1.5 is not an integer"),
    ({"size": -1}, "-1 does not fit"),
    ({"size": b"ab"}, "it has 2 bytes, and the kernel reads 4"),
    ({"size": torch.zeros(0, dtype=torch.int32)}, "the tensor has 0 bytes, and the kernel reads 4"),
    ({"size": {"n": 1}}, "it is not a struct, and takes no dict"),
    ({"params": 3}, "there is no way to write a Params"),
    ({"params": {"y": 3}}, "has no member y: its members are x, n, inner, p"),
    ({"params": {"n": [1, 2, 3, 4]}}, "member n: 16 bytes do not fit its 12"),
    ({"params": {"inner": 3}}, "member inner: a Inner takes a dict of its members"),
    ({"params": {"inner": {"c": 3}}}, "member inner: has no member c"),
    ({"params": {"p": [4096]}}, "member p: a pointer takes a tensor or None, not 4096"),
    ({"any": torch.zeros(2, 2).to_sparse()}, "a tensor of the layout torch.sparse_coo has no plain memory"),
]


@pytest.mark.parametrize(("values", "message"), REFUSED, ids=[row[1] for row in REFUSED])
def test_rejects_values_that_do_not_fit(values: dict[str, object], message: str) -> None:
    with pytest.raises(KernelArgumentError, match=message):
        bind(SIGNATURE, arguments(**values))


def test_an_argument_that_the_kernel_uses_must_be_given() -> None:
    with pytest.raises(KernelArgumentError, match="is not given size, params: its arguments are"):
        bind(SIGNATURE, {"out": torch.zeros(4)})
    assert sorted(bind(SIGNATURE, arguments(size=None)).buffers) == [0, 2]


def test_a_tensor_is_its_memory_from_its_first_element_on() -> None:
    whole = torch.arange(8.0)
    buffer = bind(SIGNATURE, arguments(out=whole[3:5])).buffers[0]
    assert (buffer.address, buffer.base, buffer.size) == (whole.data_ptr() + 12, whole.data_ptr(), 32)
    assert bind(SIGNATURE, arguments(any=torch.zeros(3, dtype=torch.int8))).buffers[4].size == 3


def test_a_struct_is_written_by_the_names_of_its_members() -> None:
    first, second = torch.zeros(1), torch.zeros(1)
    data = content(arguments(params={"inner": {"b": -2, "a": 0.5}, "n": [7, 8], "x": 1.5, "p": [first, second]}), 2)
    assert struct.unpack("<f4x2I4xeh2Q", data[:40]) == (1.5, 7, 8, 0.5, -2, first.data_ptr(), second.data_ptr())
    assert content(arguments(), 2)[:40] == bytes(40)
    assert content(arguments(params={"p": [None, first]}), 2)[24:40] == struct.pack("<2Q", 0, first.data_ptr())


def test_pointees_of_a_struct_are_listed() -> None:
    tensor = torch.zeros(5)
    assert [b.base for b in bind(SIGNATURE, arguments(params={"p": [tensor]})).pointed_at] == [tensor.data_ptr()]
    assert bind(SIGNATURE, arguments()).pointed_at == ()


def test_a_list_of_tensors_is_a_list_of_addresses() -> None:
    tensors = [torch.zeros(1), torch.zeros(1)]
    assert struct.unpack("<2Q", content(arguments(any=tensors), 4)[:16]) == tuple(t.data_ptr() for t in tensors)


PACKED = [
    ("float", 1e300, struct.pack("<f", math.inf)),
    ("half", [0.5, -2], struct.pack("<2e", 0.5, -2)),
    ("bfloat", 1.00390625, b"\x80\x3f"),
    ("bfloat", 1.01171875, b"\x82\x3f"),
    ("bfloat", math.nan, b"\xc0\x7f"),
    ("bool", [True, 0], b"\x01\x00"),
    ("char", -1, b"\xff"),
    ("long", 2**40, struct.pack("<q", 2**40)),
    ("ulong", 2**64 - 1, b"\xff" * 8),
    ("int", 3.0, b"\x03\x00\x00\x00"),
    ("uint2", [1, 2], struct.pack("<2I", 1, 2)),
    ("uint3", [1, 2, 3], struct.pack("<4I", 1, 2, 3, 0)),
    ("packed_uint3", [1, 2, 3, 4, 5, 6], struct.pack("<6I", 1, 2, 3, 4, 5, 6)),
    ("short3", [[1, 2, 3], [4, 5, 6]], struct.pack("<8h", 1, 2, 3, 0, 4, 5, 6, 0)),
    ("float2", 1 + 2j, struct.pack("<2f", 1, 2)),
    ("half2", [1 + 2j, 3j], struct.pack("<4e", 1, 2, 0, 3)),
]


@pytest.mark.parametrize(("type_name", "value", "expected"), PACKED, ids=[f"{row[0]} {row[1]}" for row in PACKED])
def test_numbers_become_the_bytes_of_their_type(type_name: str, value: object, expected: bytes) -> None:
    assert pack_values(type_name, value) == expected


def test_numbers_that_make_up_no_whole_vector_are_refused() -> None:
    with pytest.raises(KernelArgumentError, match="4 numbers do not make up whole uint3s"):
        pack_values("uint3", [1, 2, 3, 4])


def test_bytes_are_accepted_for_a_member_of_any_type() -> None:
    field = StructField("odd", "metal::_atomic", 4, 4, 0)
    assert pack_struct((field,), {"odd": b"abcd"}, 8, {}) == b"\0\0\0\0abcd"
