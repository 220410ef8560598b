"""Of which releases the kernels are launched: asked for, fetched once, and done without where they cannot be had."""

from __future__ import annotations

from pathlib import Path

import pytest

from mpsmith.audit.releases.wheel.errors import UnreachableError
from mpsmith.audit.shipped import requested_releases as releases
from mpsmith.errors import MpsmithError
from mpsmith.simulator import clang
from mpsmith.simulator.clang import CompilerMissingError


@pytest.fixture
def fetched(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    asked: list[str] = []
    cached = {"2.13.0": Path("kept.metallib")}
    monkeypatch.setattr(releases, "cached_library", cached.get)
    monkeypatch.setattr(releases, "installed_release", lambda: "2.13.0+cpu")
    monkeypatch.setattr(releases.sys, "platform", "linux")
    monkeypatch.setattr(releases, "shipped_library", asked.append)
    monkeypatch.setattr(clang, "installed", lambda: None)
    return asked


def test_none_is_none(fetched: list[str]) -> None:
    assert releases.releases_to_launch("none", pytest.fail) == (None,)


def test_the_installed_release_is_taken_where_it_is_at_hand(fetched: list[str]) -> None:
    assert releases.releases_to_launch("auto", pytest.fail) == ("2.13.0",)
    assert fetched == []


def test_missing_releases_are_fetched_and_printed(fetched: list[str]) -> None:
    said: list[str] = []
    assert releases.releases_to_launch("2.13,2.15.0,2.13.0", said.append) == ("2.13.0", "2.15.0")
    assert fetched == ["2.15.0"]
    assert [line for line in said if "2.15.0" in line] == said != []


def test_without_a_network_auto_says_so_in_a_line_and_goes_on(
    fetched: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def unreachable(release: str) -> Path:
        raise UnreachableError("the package index cannot be reached; check the network")

    monkeypatch.setattr(releases, "installed_release", lambda: "2.15.0+cpu")
    monkeypatch.setattr(releases, "shipped_library", unreachable)
    said: list[str] = []
    assert releases.releases_to_launch("auto", said.append) == (None,)
    assert said[-1] == (
        "without shipped kernels, so all evidence is dispatch only: "
        "the package index cannot be reached; check the network"
    )
    with pytest.raises(UnreachableError):
        releases.releases_to_launch("2.15.0", said.append)


def test_without_a_compiler_nothing_is_fetched(fetched: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def missing() -> None:
        raise CompilerMissingError("no compiler for Metal source: run pip install 'mpsmith[metal]'")

    monkeypatch.setattr(clang, "installed", missing)
    said: list[str] = []
    assert releases.releases_to_launch("auto", said.append) == (None,)
    assert "pip install 'mpsmith[metal]'" in said[-1]
    with pytest.raises(CompilerMissingError):
        releases.releases_to_launch("2.15.0", said.append)
    assert fetched == []


def test_a_mac_launches_its_own_kernels(fetched: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(releases.sys, "platform", "darwin")
    assert releases.releases_to_launch("auto", pytest.fail) == (None,)


@pytest.mark.parametrize("asked", ["", "2.13.0,", "nonsense"])
def test_a_release_without_kernels_is_an_error(fetched: list[str], asked: str) -> None:
    with pytest.raises(MpsmithError):
        releases.releases_to_launch(asked, lambda text: None)


def test_a_releases_kernels_come_with_its_coverage(fetched: list[str]) -> None:
    assert [releases.coverage_of(release) for release in (None, "2.13.0", "2.15.0")] == [None, None, "2.15.0"]
