"""Damaged wheels and binaries: a WheelError or the right answer, never a crash, a hang or a wrong count."""

from __future__ import annotations

import io
from collections.abc import Callable
from types import SimpleNamespace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mpsmith.audit.releases.wheel.archive import NATIVE_FUNCTIONS, WheelFile, require_apple_silicon
from mpsmith.audit.releases.wheel.binary import read_binary
from mpsmith.audit.releases.wheel.byte_ranges import StreamRanges
from mpsmith.audit.releases.wheel.errors import WheelError
from mpsmith.audit.releases.wheel.macho import read_image
from mpsmith.audit.releases.wheel.metallib import is_metal_section, read_library
from mpsmith.audit.releases.wheel.registrations import read_registrations
from mpsmith.errors import MpsmithError

FUZZ = settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])

# The load commands are where a reader is led astray: they are damaged more often than the rest.
HEADER_BYTES = 800


@st.composite
def damage(draw: st.DrawFn, size: int) -> list[tuple[int, bytes]]:
    """Some places and what is written there."""
    near_start = st.integers(0, min(HEADER_BYTES, size - 1))
    anywhere = st.integers(0, size - 1)
    words = st.sampled_from([b"\xff" * 4, b"\0" * 4, b"\xff" * 8, b"\0\0\0\x80", b"\x7f\xff\xff\xff", b"\x10"])
    return draw(
        st.lists(
            st.tuples(st.one_of(near_start, anywhere), st.one_of(words, st.binary(min_size=1, max_size=8))), max_size=4
        )
    )


def damaged(data: bytes, changes: list[tuple[int, bytes]], cut: int) -> bytes:
    changed = bytearray(data)
    for at, new in changes:
        changed[at : at + len(new)] = new
    return bytes(changed[: len(changed) - cut])


def read_raw(data: bytes) -> object:
    source = StreamRanges(io.BytesIO(data), len(data))
    libraries: list[object] = []
    image = read_image(
        source, is_metal_section, lambda section, ranges: libraries.append(read_library(section, ranges))
    )
    return read_registrations(image), libraries


def error_of(read: Callable[[], object]) -> str:
    """The message of the error that a user sees, or an empty one if reading succeeded."""
    try:
        read()
    except MpsmithError as error:
        return str(error)
    return ""


@pytest.fixture(scope="session")
def library(build: SimpleNamespace) -> bytes:
    data: bytes = build.MachO().build()
    return data


@pytest.fixture(scope="session")
def wheel(build: SimpleNamespace, library: bytes) -> bytes:
    data: bytes = build.Wheel(library=library).packed()
    return data


@FUZZ
@given(data=st.data())
def test_a_damaged_binary_never_crashes_the_reader(data: st.DataObject, library: bytes) -> None:
    broken = damaged(library, data.draw(damage(len(library))), data.draw(st.integers(0, 200)))
    assert "\n" not in error_of(lambda: read_raw(broken))


@FUZZ
@given(data=st.data())
def test_a_damaged_wheel_gives_an_error_or_the_right_answer(
    data: st.DataObject, wheel: bytes, build: SimpleNamespace
) -> None:
    broken = damaged(wheel, data.draw(damage(len(wheel))), data.draw(st.sampled_from([0, 0, 1, 20, 500])))
    expected = read_binary(WheelFile(io.BytesIO(wheel), "whole"))

    def read_all() -> None:
        archive = WheelFile(io.BytesIO(broken), "damaged")
        require_apple_silicon(archive)
        assert archive.read(NATIVE_FUNCTIONS) == build.YAML
        assert read_binary(archive) == expected

    assert "\n" not in error_of(read_all)


@FUZZ
@given(data=st.binary(max_size=400))
def test_rejects_arbitrary_bytes(data: bytes) -> None:
    with pytest.raises(WheelError):
        WheelFile(io.BytesIO(data), "noise")
    with pytest.raises(WheelError):
        read_raw(data)
