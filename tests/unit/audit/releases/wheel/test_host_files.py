"""The libraries and headers of a release's host code, unpacked from its macOS wheel."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from mpsmith.audit.releases.wheel import fetch
from mpsmith.audit.releases.wheel.errors import UnreachableError, WheelError
from mpsmith.audit.releases.wheel.libraries import LIBRARIES, host_files

FILES = {f"torch/lib/{name}": name.encode() for name in LIBRARIES} | {"torch/include/c10/core.h": b"int x;"}
TAG = "cp312-cp312-macosx_14_0_arm64"


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MPSMITH_CACHE", str(tmp_path))
    monkeypatch.setattr(fetch, "_run_pip", lambda command: "ERROR: Failed to establish a new connection")
    return tmp_path


def put(cache: Path, content: bytes, tag: str = TAG) -> Path:
    path = cache / "wheels" / f"torch-2.99.0-{tag}.whl"
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(content)
    return path


def test_the_files_come_out_of_the_wheel_once(build: SimpleNamespace, cache: Path) -> None:
    wheel = put(cache, build.Wheel(files=FILES).packed())
    folder = host_files("2.99.0")
    wheel.unlink()
    assert host_files("2.99.0") == folder
    contents = {path.relative_to(folder.parent).as_posix(): path.read_bytes() for path in folder.rglob("*.*")}
    assert contents == FILES


def test_a_wheel_that_cannot_be_used_is_refused_and_leaves_nothing(build: SimpleNamespace, cache: Path) -> None:
    linux = "cp312-cp312-manylinux_2_28_x86_64"
    whole = build.Wheel(files=FILES).packed()
    damaged = build.Wheel(files=FILES, compression=0).packed().replace(b"libomp.dylib" + b"l", b"libomp.dylib" + b"x")
    for content, tag, message in (
        (build.Wheel(files=FILES, tag=linux).packed(), linux, "is a wheel for Linux"),
        (whole[: len(whole) // 2], TAG, "was cut short"),
        (damaged, TAG, r"libomp\.dylib is damaged .*; fetch the wheel again"),
        (build.Wheel().packed(), TAG, r"has no torch/lib/libomp\.dylib"),
    ):
        wheel = put(cache, content, tag)
        with pytest.raises(WheelError, match=message) as caught:
            host_files("2.99.0")
        assert "\n" not in str(caught.value)
        assert [path for path in (cache / "wheel-files").rglob("*") if path.is_file()] == []
        wheel.unlink()


def test_without_a_network_the_error_names_a_remedy() -> None:
    with pytest.raises(UnreachableError, match="check the network, or put a wheel of it"):
        host_files("2.99.0")
