from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from mpsmith.audit.releases.wheel.archive import open_path
from mpsmith.audit.releases.wheel.code_generator import GENERATOR, HEADERS, code_generator
from mpsmith.audit.releases.wheel.errors import WheelError

FILES = {
    GENERATOR: b"class MetalKernel: ...\n",
    f"{HEADERS}utils.h": b"// utils\n",
    f"{HEADERS}deeper/more.h": b"// more\n",
    "torch/include/c10/core/Device.h": b"// not Metal\n",
    "torch/_inductor/codegen/simd.py": b"class SIMDKernel: ...\n",
}

PutWheel = Callable[..., Path]
pytestmark = pytest.mark.usefixtures("cache")


def test_the_generator_and_its_headers_are_laid_out_as_in_the_wheel(put_wheel: PutWheel) -> None:
    put_wheel(files=FILES)
    folder = code_generator("2.99.0")
    files = {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    assert files == {name: FILES[name] for name in (GENERATOR, f"{HEADERS}utils.h", f"{HEADERS}deeper/more.h")}


def test_reads_each_file_once(put_wheel: PutWheel, cache: Path) -> None:
    put_wheel(files=FILES)
    first = code_generator("2.99.0")
    for wheel in (cache / "wheels").iterdir():
        wheel.unlink()
    assert code_generator("2.99.0") == first
    assert [path.name for path in first.parent.iterdir()] == ["2.99.0"]


def test_rejects_a_release_that_generates_no_metal_without_reading_it() -> None:
    with pytest.raises(WheelError, match=r"^torch 2.6.0 generates no Metal under torch.compile; 2.7.0 is the first"):
        code_generator("2.6.0")


def test_rejects_a_wheel_without_the_generator_and_leaves_no_file(put_wheel: PutWheel, cache: Path) -> None:
    put_wheel(files={f"{HEADERS}utils.h": b""})
    with pytest.raises(
        WheelError, match=r"has no torch/_inductor/codegen/mps\.py: its torch.compile generates no Metal"
    ):
        code_generator("2.99.0")
    assert not (cache / "codegen").exists()


def test_rejects_text_that_is_not_a_release() -> None:
    with pytest.raises(WheelError, match="is not a version of torch"):
        code_generator("../2.13.0")


def test_an_unpacked_wheel_lists_its_files_below_a_folder(build: SimpleNamespace, tmp_path: Path) -> None:
    folder = build.Wheel(files=FILES).unpack(tmp_path / "unpacked")
    assert open_path(folder).names(HEADERS) == [f"{HEADERS}deeper/more.h", f"{HEADERS}utils.h"]
