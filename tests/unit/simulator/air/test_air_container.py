from __future__ import annotations

import hashlib
import struct
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mpsmith.simulator.air.container import HEADER_SIZE, LibraryFile, Version, read_functions, read_header, read_names
from mpsmith.simulator.errors import AirError, MalformedLibraryError
from support.metal_libraries import HEADER, field, library_of_records, metal_library, record, write_metal_library

MODULES = {"abs_float": b"first module", "sin_half": b"the second", "neg_long": b"3"}


def read(data: bytes) -> tuple[str, ...]:
    """The names of the functions, read both ways."""
    header = read_header(data[:HEADER_SIZE], len(data))
    listed = data[header.functions.offset : header.functions.end]
    names = tuple(function.name for function in read_functions(header, listed))
    assert read_names(listed) == names
    return names


def changed(data: bytes, at: int, layout: str, value: int) -> bytes:
    copy = bytearray(data)
    struct.pack_into(layout, copy, at, value)
    return bytes(copy)


def test_every_field_of_a_library_is_read(tmp_path: Path) -> None:
    library = LibraryFile(write_metal_library(tmp_path / "a.metallib", MODULES))
    assert library.names == ("abs_float", "sin_half", "neg_long")
    function = library.function("sin_half")
    assert function in library.functions
    assert (function.kind, function.size, function.offset) == (2, 10, 12)
    assert (function.air, function.metal) == (Version(2, 6), Version(3, 1))
    assert function.sha256 == hashlib.sha256(b"the second").hexdigest()
    assert (library.header.container, library.header.macos) == (Version(2, 7), Version(14, 0))
    assert str(library.header.macos) == "14.0"


def test_the_bitcode_of_each_function(tmp_path: Path) -> None:
    library = LibraryFile(write_metal_library(tmp_path / "a.metallib", MODULES))
    assert {name: library.bitcode(name) for name in library.names} == MODULES
    assert "sin_half" in library
    assert "cos_half" not in library
    with pytest.raises(KeyError):
        library.bitcode("cos_half")


def test_bitcode_of_another_hash_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.metallib"
    path.write_bytes(metal_library(MODULES).replace(b"the second", b"the Second"))
    library = LibraryFile(path)
    assert library.bitcode("abs_float") == b"first module"
    with pytest.raises(MalformedLibraryError, match=r"a\.metallib: the bitcode of sin_half does not match its hash"):
        library.bitcode("sin_half")


def test_a_library_may_be_followed_by_other_bytes() -> None:
    assert read(metal_library(MODULES) + b"more") == tuple(MODULES)


def test_unknown_fields_are_passed_over() -> None:
    with_more = record("f", b"x", 0)[4:-4] + field(b"XTRA", b"12345") + b"ENDT"
    assert read(library_of_records([struct.pack("<I", len(with_more) + 4) + with_more], b"x")) == ("f",)


def test_a_library_without_functions() -> None:
    assert read(metal_library({})) == ()


@pytest.mark.parametrize(
    ("at", "layout", "value", "message"),
    [
        (0, "<I", 0, "not a Metal library"),
        (4, "<H", 1, "is not for macOS"),
        (16, "<Q", 1 << 40, r"claims to have \d+ bytes, but has \d+"),
        (24, "<Q", 0, "are outside of it or in two of its parts"),
        (32, "<Q", 1 << 63, "are outside of it or in two of its parts"),
        (40, "<Q", 100, "are outside of it or in two of its parts"),
        (72, "<Q", 1 << 40, "are outside of it or in two of its parts"),
        (80, "<Q", 1 << 40, "are outside of it or in two of its parts"),
        (88, "<I", 1 << 30, "ends too early"),
        (92, "<I", 1 << 30, "ends too early"),
        (92, "<I", 0, "has no name"),
        (100, "<H", 200, "longer than its record"),
    ],
)
def test_a_damaged_library_is_refused(at: int, layout: str, value: int, message: str) -> None:
    with pytest.raises(MalformedLibraryError, match=message):
        read(changed(metal_library(MODULES), at, layout, value))


@pytest.mark.parametrize(
    ("at", "layout", "value", "message"),
    [
        (88, "<I", 1 << 30, "ends too early"),
        (92, "<I", 1 << 30, "ends too early"),
        (92, "<I", 0, "has no name"),
        (92, "<I", 8, "has no name"),
        (96, "<I", 0, "has no name"),
        (100, "<H", 200, "longer than its record"),
    ],
)
def test_names_of_a_damaged_list_are_refused(at: int, layout: str, value: int, message: str) -> None:
    data = changed(metal_library(MODULES), at, layout, value)
    header = read_header(data[:HEADER_SIZE], len(data))
    with pytest.raises(MalformedLibraryError, match=message):
        read_names(data[header.functions.offset : header.functions.end])


def test_a_name_that_is_not_the_first_field() -> None:
    usual = record("f", b"x", 0)[4:-4]
    turned = usual[8:] + usual[:8] + b"ENDT"
    assert read(library_of_records([struct.pack("<I", len(turned) + 4) + turned], b"x")) == ("f",)


def test_a_list_that_would_fill_the_memory_is_refused() -> None:
    huge = 300 << 20
    places = (HEADER_SIZE, huge, HEADER_SIZE + huge + 4, 0, HEADER_SIZE + huge + 4, 0, HEADER_SIZE + huge + 4, 0)
    header = HEADER.pack(b"MTLB", 0x8001, 2, 7, 0, 0x81, 14, 0, huge + 1000, *places)
    with pytest.raises(MalformedLibraryError, match=f"claims to have {huge} bytes"):
        read_header(header, huge + 1000)


@pytest.mark.parametrize(
    ("records", "bitcode", "message"),
    [
        ([record("f", b"abcd", 1)], b"abcd", "the bitcode of f is outside"),
        ([record("f", b"abcd", 1 << 62)], b"abcd", "the bitcode of f is outside"),
        ([record("f", b"ab", 0), record("g", b"bc", 1)], b"abc", "the bitcode of g is outside .* or in another"),
        ([record("f", b"ab", 0), record("f", b"cd", 2)], b"abcd", "has two functions f"),
        ([record("f", b"ab", 0).replace(b"MDSZ", b"XXXX")], b"ab", "the record of f .* is incomplete"),
        ([record("f", b"ab", 0).replace(b"HASH", b"XXXX")], b"ab", "the record of f .* is incomplete"),
        ([record("f\n", b"ab", 2)], b"ab", r"the bitcode of f\? is outside"),
    ],
)
def test_records_that_contradict_the_library_are_refused(records: list[bytes], bitcode: bytes, message: str) -> None:
    with pytest.raises(MalformedLibraryError, match=message):
        read(library_of_records(records, bitcode))


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    (tmp_path / "empty.metallib").touch()
    (tmp_path / "text.metallib").write_text("no library")
    for name in ("absent", "empty", "text"):
        with pytest.raises(AirError, match=f"{name}.metallib"):
            LibraryFile(tmp_path / f"{name}.metallib")


@settings(max_examples=300, deadline=None)
@given(data=st.data())
def test_a_damaged_library_gives_an_error_or_functions_inside_it(data: st.DataObject) -> None:
    broken = bytearray(metal_library(MODULES))
    for _ in range(data.draw(st.integers(1, 4))):
        broken[data.draw(st.integers(0, len(broken) - 1))] = data.draw(st.integers(0, 255))
    del broken[len(broken) - data.draw(st.sampled_from([0, 0, 1, 30])) :]
    with suppress(MalformedLibraryError):
        header = read_header(broken[:HEADER_SIZE], len(broken))
        for function in read_functions(header, broken[header.functions.offset : header.functions.end]):
            start = header.bitcode.offset + function.offset
            assert 0 <= start <= start + function.size <= len(broken)
