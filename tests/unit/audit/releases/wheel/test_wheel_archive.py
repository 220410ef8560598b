import os
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from mpsmith.audit.releases.wheel.archive import LIBRARY, NATIVE_FUNCTIONS, WheelFile, open_path
from mpsmith.audit.releases.wheel.errors import WheelError

Write = Callable[[Any], Path]


def test_reads_the_identity_of_a_wheel(build: SimpleNamespace, wheel_file: Write) -> None:
    archive = open_path(wheel_file(build.Wheel()))
    assert (archive.identity.project, archive.identity.release) == ("torch", "2.99.0")
    assert archive.identity.platforms == ("macosx_14_0_arm64",)
    assert archive.read(NATIVE_FUNCTIONS) == build.YAML
    assert not archive.has(LIBRARY)


def test_reads_an_unpacked_wheel(build: SimpleNamespace, tmp_path: Path) -> None:
    archive = open_path(build.Wheel().unpack(tmp_path))
    assert archive.identity.release == "2.99.0"
    assert archive.read(NATIVE_FUNCTIONS) == build.YAML


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"project": "numpy"}, "is a wheel of numpy, not of torch"),
        ({"tag": "cp312-cp312-manylinux_2_28_x86_64"}, "is a wheel for Linux: it has no MPS kernels"),
        ({"tag": "cp312-cp312-win_amd64"}, "is a wheel for Windows: it has no MPS kernels"),
        ({"tag": "py3-none-any"}, r"another platform \(any\)"),
    ],
)
def test_rejects_other_wheels(build: SimpleNamespace, wheel_file: Write, change: dict[str, str], message: str) -> None:
    with pytest.raises(WheelError, match=message):
        open_path(wheel_file(build.Wheel(**change)))


@pytest.mark.parametrize(("cpu", "is_arm64"), [(0x0100000C, True), (0x01000007, False)])
def test_old_arm64_wheels_call_themselves_x86_64(
    build: SimpleNamespace, wheel_file: Write, cpu: int, is_arm64: bool
) -> None:
    wheel = build.Wheel(tag="cp38-cp38-macosx_11_0_x86_64", library=build.MachO(cpu=cpu).build())
    if is_arm64:
        assert open_path(wheel_file(wheel)).identity.release == "2.99.0"
    else:
        with pytest.raises(WheelError, match="is a wheel for Intel Macs"):
            open_path(wheel_file(wheel))


def test_rejects_files_that_are_not_wheels(build: SimpleNamespace, tmp_path: Path) -> None:
    text = tmp_path / "text.whl"
    text.write_text("not a zip file")
    with pytest.raises(WheelError, match=r"text\.whl is not a wheel, or was cut short"):
        open_path(text)
    cut = tmp_path / "cut.whl"
    cut.write_bytes(build.Wheel().packed()[:-40])
    with pytest.raises(WheelError, match="was cut short"):
        open_path(cut)
    with pytest.raises(WheelError, match="there is no file or folder"):
        open_path(tmp_path / "absent.whl")
    with pytest.raises(WheelError, match="holds no unpacked torch wheel"):
        open_path(tmp_path)


def test_rejects_a_zip_archive_without_metadata(tmp_path: Path) -> None:
    import zipfile

    path = tmp_path / "plain.whl"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("hello.txt", "hello")
    with pytest.raises(WheelError, match="is a zip archive, but no wheel"):
        open_path(path)


def test_missing_and_damaged_members(build: SimpleNamespace, wheel_file: Write) -> None:
    path = wheel_file(build.Wheel(files={"data.bin": b"0123456789" * 500}, compression=0))
    archive = open_path(path)
    with pytest.raises(WheelError, match="has no absent"):
        archive.read("absent")
    data = path.read_bytes()
    path.write_bytes(data.replace(b"0123456789" * 3, b"0123456789" * 2 + b"0123X56789", 1))
    with pytest.raises(WheelError, match=r"data\.bin is damaged \(Bad CRC-32.*fetch the wheel again"):
        open_path(path).read("data.bin")


def test_unreasonably_large_texts_are_not_read(
    build: SimpleNamespace, wheel_file: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive = open_path(wheel_file(build.Wheel()))
    monkeypatch.setattr("mpsmith.audit.releases.wheel.archive.MOST_TEXT_BYTES", 100)
    with pytest.raises(WheelError, match="is said to have"):
        archive.read(NATIVE_FUNCTIONS)


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root reads everything")
def test_an_unreadable_file(build: SimpleNamespace, wheel_file: Write) -> None:
    path = wheel_file(build.Wheel())
    path.chmod(0)
    with pytest.raises(WheelError, match=r"cannot read .*Permission denied"):
        open_path(path)


def test_rejects_a_directory_as_zip_file(tmp_path: Path) -> None:
    with pytest.raises(WheelError, match="cannot read here"):
        WheelFile(tmp_path, "here")
