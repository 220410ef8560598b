from __future__ import annotations

import errno
import io
import shutil
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from filelock import FileLock

from mpsmith.audit.releases.data import ReleaseFacts, load_facts
from mpsmith.audit.releases.wheel import fetch, shipped
from mpsmith.audit.releases.wheel.archive import WheelFile
from mpsmith.audit.releases.wheel.errors import NoMetalKernelsError, RangesNotServedError, UnreachableError, WheelError
from mpsmith.audit.releases.wheel.shipped import ShippedCacheError, cached_library, full_release, shipped_library
from mpsmith.simulator.air.container import LibraryFile

BOTH = {"metal_basic": ["abs_float", "abs_half"], "metal_40": ["abs_float", "abs_mpp"]}
pytestmark = pytest.mark.usefixtures("cache")


@pytest.fixture
def offline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetch, "_run_pip", lambda command: "ERROR: Failed to establish a new connection")


def names(path: Path) -> tuple[str, ...]:
    return LibraryFile(path).names


def left_over(cache: Path) -> list[str]:
    return sorted(path.name for path in (cache / "shipped").rglob("*") if path.is_file() and path.name != ".lock")


@pytest.mark.parametrize(
    ("metal", "section"),
    [
        (BOTH, "metal_basic"),
        ({"metal_basic": ["abs_float"], "metal_bfloat": ["abs_float", "abs_bfloat"]}, "metal_bfloat"),
        ({"metal_next": ["abs_float"]}, "metal_next"),
    ],
)
def test_the_library_comes_out_of_the_wheel_in_the_cache(
    put_wheel: Callable[..., Path], cache: Path, metal: dict[str, list[str]], section: str
) -> None:
    put_wheel(metal)
    path = shipped_library("2.99.0")
    assert path == cache / "shipped" / "2.99.0" / f"{section}.metallib"
    assert names(path) == tuple(metal[section])
    assert left_over(cache) == [f"{section}.metallib", "sections.json"]


def test_uses_the_cache_before_the_wheel(put_wheel: Callable[..., Path], offline: None) -> None:
    wheel = put_wheel(BOTH)
    assert cached_library("2.99.0") is None
    path = shipped_library("2.99.0")
    wheel.unlink()
    assert shipped_library("2.99.0") == cached_library("2.99.0+cpu") == path


def test_nothing_behind_the_library_is_inflated(
    put_wheel: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    put_wheel(BOTH)
    monkeypatch.setattr(
        "mpsmith.audit.releases.wheel.byte_ranges.StreamRanges.finish", lambda self: pytest.fail("read all")
    )
    assert names(shipped_library("2.99.0")) == ("abs_float", "abs_half")


def test_removes_files_of_killed_processes(put_wheel: Callable[..., Path], cache: Path) -> None:
    put_wheel(BOTH)
    stale = cache / "shipped" / "2.99.0" / ".new-abc" / "metal_basic.metallib"
    stale.parent.mkdir(parents=True)
    stale.write_bytes(b"half of it")
    assert names(shipped_library("2.99.0")) == ("abs_float", "abs_half")
    assert left_over(cache) == ["metal_basic.metallib", "sections.json"]


@pytest.mark.parametrize("damage", ["library", "record"])
def test_replaces_damaged_cache_files(put_wheel: Callable[..., Path], damage: str) -> None:
    put_wheel(BOTH)
    path = shipped_library("2.99.0")
    damaged = path if damage == "library" else path.with_name("sections.json")
    damaged.write_bytes(damaged.read_bytes()[:-3])
    assert cached_library("2.99.0") is None
    assert names(shipped_library("2.99.0")) == ("abs_float", "abs_half")


def test_a_release_without_kernels_says_so_and_is_read_once(put_wheel: Callable[..., Path], offline: None) -> None:
    wheel = put_wheel({})
    with pytest.raises(NoMetalKernelsError, match=r"torch 2\.99\.0 ships no compiled Metal kernels"):
        shipped_library("2.99.0")
    wheel.unlink()
    with pytest.raises(NoMetalKernelsError, match=r"torch 2\.99\.0 ships no compiled Metal kernels"):
        shipped_library("2.99.0")


@pytest.mark.parametrize("release", ["2.5.1", "2.5", "1.13.1"])
def test_rejects_releases_before_the_first_kernels_without_pip(release: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetch, "_run_pip", lambda command: pytest.fail("pip was asked"))
    with pytest.raises(NoMetalKernelsError, match=r"ships no compiled Metal kernels; 2\.6\.0 is the first release"):
        shipped_library(release)


@pytest.mark.parametrize(
    ("name", "release"),
    [("2.13", "2.13.0"), ("2.14", "2.14.1"), ("2.14.0", "2.14.0"), ("2.13.0+cpu", "2.13.0"), ("2.99", "2.99")],
)
def test_a_minor_release_means_its_newest_patch(name: str, release: str) -> None:
    assert full_release(name) == release


@pytest.mark.parametrize("release", ["newest", "../2.13.0", "2.13.0/..", "", "2"])
def test_rejects_text_that_is_not_a_release(release: str, cache: Path) -> None:
    with pytest.raises(WheelError, match=r"is not a version of torch|is not written like a release"):
        shipped_library(release)
    assert not cache.exists()


def test_errors_without_a_network_name_a_remedy(offline: None, cache: Path) -> None:
    message = "check the network, or put a wheel of it for macOS on arm64 into .*wheels$"
    with pytest.raises(UnreachableError, match=message) as caught:
        shipped_library("2.99.0")
    assert "\n" not in str(caught.value)
    assert left_over(cache) == []


def test_an_index_that_serves_no_ranges_gives_the_whole_wheel(
    put_wheel: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    wheel = put_wheel(BOTH)
    elsewhere = wheel.rename(wheel.parent.parent / wheel.name)

    def no_ranges(release: str) -> None:
        raise RangesNotServedError("no ranges")

    monkeypatch.setattr(fetch, "open_remote", no_ranges)
    monkeypatch.setattr(fetch, "fetch_wheel", lambda release: elsewhere)
    assert names(shipped_library("2.99.0")) == ("abs_float", "abs_half")


def test_reads_remote_wheels_in_place(build: SimpleNamespace, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wheel = build.Wheel(library=build.MachO(metal=BOTH).build()).packed()
    monkeypatch.setattr(fetch, "open_remote", lambda release: WheelFile(io.BytesIO(wheel), f"remote {release}"))
    assert names(shipped_library("2.99.0")) == ("abs_float", "abs_half")
    assert not (cache / "wheels").exists()


def test_rejects_a_wheel_of_another_platform(put_wheel: Callable[..., Path], cache: Path) -> None:
    put_wheel(BOTH, tag="cp312-cp312-manylinux_2_28_x86_64")
    with pytest.raises(WheelError, match="is a wheel for Linux"):
        shipped_library("2.99.0")
    assert left_over(cache) == []


def test_rejects_modules_with_a_wrong_hash(
    build: SimpleNamespace, cache: Path, wheel_file: Callable[..., Path]
) -> None:
    damaged = build.MachO(metal=BOTH).build().replace(b"code of abs_half", b"bits of abs_half")
    path = wheel_file(build.Wheel(library=damaged))
    (cache / "wheels").mkdir(parents=True)
    path.rename(cache / "wheels" / path.name)
    with pytest.raises(
        WheelError, match=r"torch-2\.99\.0.*section metal_basic: the bitcode of abs_half does not match its"
    ):
        shipped_library("2.99.0")
    assert left_over(cache) == ["sections.json"]


def test_a_disk_that_is_full_while_the_library_is_written(
    put_wheel: Callable[..., Path], cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put_wheel(BOTH)
    opened = Path.open

    class Full(io.BytesIO):
        def write(self, data: object) -> int:
            raise OSError(errno.ENOSPC, "No space left on device")

    def full(self: Path, mode: str = "r", *arguments: Any, **options: Any) -> Any:
        return Full() if self.suffix == ".metallib" and "w" in mode else opened(self, mode, *arguments, **options)

    monkeypatch.setattr(Path, "open", full)
    with pytest.raises(ShippedCacheError, match=r"^cannot keep Metal kernels in .*: No space left .*MPSMITH_CACHE"):
        shipped_library("2.99.0")
    assert left_over(cache) == ["sections.json"]


def test_concurrent_processes_extract_once(
    put_wheel: Callable[..., Path], cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put_wheel(BOTH)
    written = shipped_library("2.99.0").parent.rename(tmp_path / "written")
    folder = cache / "shipped" / "2.99.0"
    folder.mkdir()
    monkeypatch.setattr(shipped, "_extract_release", lambda *arguments: pytest.fail("it did not wait"))
    with ThreadPoolExecutor(1) as second:
        with FileLock(folder / ".lock"):
            waiting = second.submit(shipped_library, "2.99.0")
            for path in written.glob("[!.]*"):
                shutil.copy(path, folder)
        assert names(waiting.result()) == ("abs_float", "abs_half")


@pytest.mark.network
@pytest.mark.parametrize(
    "facts", [facts for facts in load_facts() if facts.metal_functions], ids=lambda facts: facts.release
)
def test_the_library_of_every_release_that_ships_one(facts: ReleaseFacts, cache: Path) -> None:
    path = shipped_library(facts.release)
    assert len(LibraryFile(path).names) == facts.metal_functions[path.stem]
    # Nothing but the library is kept, and the wheel was not fetched whole.
    assert left_over(cache) == [path.name, "sections.json"]
    assert not (cache / "wheels").exists()


@pytest.mark.network
def test_a_release_before_the_first_kernels_has_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shipped, "FIRST_RELEASE", "2.5.0")
    with pytest.raises(NoMetalKernelsError, match=r"torch 2\.5\.1 ships no compiled Metal kernels$"):
        shipped_library("2.5.1")
