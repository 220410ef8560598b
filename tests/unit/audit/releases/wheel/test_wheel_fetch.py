import json
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace

import pytest

from mpsmith.audit.releases.coverage.sources import release_coverage
from mpsmith.audit.releases.wheel import fetch
from mpsmith.audit.releases.wheel.errors import WheelError

NO_MATCH = (
    "ERROR: Could not find a version that satisfies the requirement torch==9.9.9 (from versions: 2.10.0, 2.9.1)\n"
    "ERROR: No matching distribution found for torch==9.9.9\n"
)
NO_NETWORK = (
    "WARNING: Retrying after connection broken by 'NewConnectionError(...)'\n"
    "ERROR: No matching distribution found for torch==9.9.9\n"
)


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MPSMITH_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "wheels"


def pip(monkeypatch: pytest.MonkeyPatch, answer: Callable[[Sequence[str]], str | None]) -> list[Sequence[str]]:
    """Replace pip by a function. Returns the commands that it got."""
    commands: list[Sequence[str]] = []

    def run(command: Sequence[str]) -> str | None:
        commands.append(command)
        return answer(command)

    monkeypatch.setattr(fetch, "_run_pip", run)
    return commands


def option(command: Sequence[str], name: str) -> str:
    return command[list(command).index(name) + 1]


def downloads(wheel: bytes, python: str) -> Callable[[Sequence[str]], str | None]:
    """A pip that has the wheel for one version of Python only."""

    def answer(command: Sequence[str]) -> str | None:
        if option(command, "--python-version") != python:
            return NO_MATCH
        Path(option(command, "--dest"), "torch-2.99.0-cp310-none-macosx_11_0_arm64.whl").write_bytes(wheel)
        return None

    return answer


def test_python_versions_are_tried_until_one_fits(
    build: SimpleNamespace, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commands = pip(monkeypatch, downloads(build.Wheel().packed(), "3.10"))
    path = fetch.fetch_wheel("2.99.0")
    assert path == cache / "torch-2.99.0-cp310-none-macosx_11_0_arm64.whl"
    assert [option(command, "--python-version") for command in commands] == ["3.13", "3.12", "3.11", "3.10"]
    assert "--no-deps" in commands[0]
    assert list(cache.iterdir()) == [path]


def test_a_fetched_wheel_is_not_fetched_again(
    build: SimpleNamespace, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pip(monkeypatch, downloads(build.Wheel().packed(), "3.13"))
    first = fetch.fetch_wheel("2.99.0")
    commands = pip(monkeypatch, lambda command: NO_NETWORK)
    assert fetch.fetch_wheel("2.99.0") == first
    assert commands == []


@pytest.mark.parametrize(
    ("output", "message"),
    [
        (NO_MATCH, r"the index has no torch 9\.9\.9 for macOS on arm64; it has: 2\.9\.1, 2\.10\.0"),
        (NO_NETWORK, "the package index cannot be reached; check the network"),
        ("OSError: [Errno 28] No space left on device\n", "the disk is full; set MPSMITH_CACHE"),
        ("/usr/bin/python: No module named pip\n", "pip is not installed in this Python"),
        ("ERROR: something else\n", "ERROR: something else"),
        ("", "pip failed without a message"),
    ],
)
def test_summarises_errors_of_pip(cache: Path, monkeypatch: pytest.MonkeyPatch, output: str, message: str) -> None:
    pip(monkeypatch, lambda command: output)
    with pytest.raises(WheelError, match=message) as caught:
        fetch.fetch_wheel("9.9.9")
    assert "\n" not in str(caught.value)
    assert list(cache.iterdir()) == []


def test_a_damaged_download_does_not_get_into_the_cache(
    build: SimpleNamespace, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pip(monkeypatch, downloads(build.Wheel().packed()[:-30], "3.13"))
    with pytest.raises(WheelError, match="was cut short"):
        fetch.fetch_wheel("2.99.0")
    assert list(cache.iterdir()) == []


def test_a_cache_that_cannot_be_written(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache.parent.mkdir()
    cache.write_text("a file in the way")
    with pytest.raises(WheelError, match="cannot keep the wheel in"):
        fetch.fetch_wheel("2.99.0")


@pytest.mark.parametrize("release", ["newest", "2.15.0; rm -rf", "--index-url=x", ""])
def test_checks_versions_before_running_pip(release: str, monkeypatch: pytest.MonkeyPatch) -> None:
    commands = pip(monkeypatch, lambda command: NO_MATCH)
    with pytest.raises(WheelError, match="is not a version of torch"):
        fetch.fetch_wheel(release)
    assert commands == []


def test_the_address_of_a_wheel_comes_from_pips_report(monkeypatch: pytest.MonkeyPatch) -> None:
    def answer(command: Sequence[str]) -> None:
        report = {"install": [{"download_info": {"url": "https://example.invalid/torch.whl"}}]}
        Path(option(command, "--report")).write_text(json.dumps(report))

    commands = pip(monkeypatch, answer)
    opened: list[str] = []
    monkeypatch.setattr(fetch, "open_url", opened.append)
    fetch.open_remote("2.99.0")
    assert opened == ["https://example.invalid/torch.whl"]
    assert "--dry-run" in commands[0]


def test_an_unknown_release_is_fetched_and_read(
    build: SimpleNamespace, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wheel = build.Wheel(library=build.MachO().build())
    pip(monkeypatch, downloads(wheel.packed(), "3.12"))
    coverage = release_coverage("2.99.0")
    assert coverage.release == "2.99.0"
    assert coverage.facts is not None
    assert coverage.facts.always_falls_back == ("embedding_renorm_", "linalg_svd")
