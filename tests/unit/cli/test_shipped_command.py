from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

from mpsmith.cli.shipped import app
from support.commands import output, printed_json, refusal
from support.metal_libraries import metal_library, write_metal_library

OLD = {"hypot_dense_float_float": b"first", "hypot_dense_half_half": b"half", "mb_sort_block_float": b"sort"}
NEW = {"hypot_dense_float_float": b"second", "hypot_dense_half_half": b"half", "hypot_dense_bfloat_bfloat": b"bfloat"}


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache that has the libraries of two releases."""
    monkeypatch.setenv("MPSMITH_CACHE", str(tmp_path / "cache"))
    for release, modules in {"2.98.0": OLD, "2.99.0": NEW}.items():
        folder = tmp_path / "cache" / "shipped" / release
        folder.mkdir(parents=True)
        write_metal_library(folder / "metal_basic.metallib", modules)
        sections = {"metal_basic": len(metal_library(modules)), "metal_40": 12345}
        (folder / "sections.json").write_text(json.dumps(sections))
    return tmp_path / "cache"


@pytest.fixture
def library(cache: Path) -> str:
    return str(cache / "shipped" / "2.99.0" / "metal_basic.metallib")


def test_the_libraries_of_a_release() -> None:
    lines = [line.split() for line in output(app, "list", "--torch", "2.99.0").splitlines()]
    assert lines[0] == ["torch", "2.99.0"]
    assert ["metal_basic", f"{len(metal_library(NEW)):,}", "3", "14.0", "2.6", "3.1"] in lines
    assert ["metal_40", "12,345"] in lines


def test_the_kernels_that_a_pattern_matches() -> None:
    shown = output(app, "list", "hypot_*_half", "*bfloat", "--torch", "2.99.0")
    rows = [line.split() for line in shown.splitlines()[2:4]]
    assert rows == [
        ["hypot_dense_half_half", "4", hashlib.sha256(b"half").hexdigest()[:16], "2.6", "3.1"],
        ["hypot_dense_bfloat_bfloat", "6", hashlib.sha256(b"bfloat").hexdigest()[:16], "2.6", "3.1"],
    ]
    assert shown.endswith("2 kernels of 3 in metal_basic of torch 2.99.0\n")


def test_the_kernels_of_an_operator() -> None:
    assert "mb_sort" not in output(app, "list", "--torch", "2.98.0", "--ops", "hypot")
    assert "hypot" not in output(app, "list", "mb_*", "--torch", "2.98.0")


def test_a_library_as_json(library: str) -> None:
    data = printed_json(app, "list", "hypot_dense_float_float", "--wheel", library)
    assert (data["source"], data["release"], data["library"]) == (library, None, "metal_basic")
    assert (data["container"], data["macos"]) == ("2.7", "14.0")
    assert data["kernels"] == [
        {
            "name": "hypot_dense_float_float",
            "family": "hypot",
            "operators": ["hypot"],
            "bytes": 6,
            "sha256": hashlib.sha256(b"second").hexdigest(),
            "air": "2.6",
            "metal": "3.1",
        }
    ]
    assert len(printed_json(app, "list", "--torch", "2.98.0")["kernels"]) == 3


def test_what_changed_between_two_releases() -> None:
    lines = [line.split() for line in output(app, "diff", "2.98.0", "2.99.0").splitlines()]
    for row in (["new", "1"], ["gone", "1"], ["other", "code", "1"], ["the", "same", "1"]):
        assert row in lines
    assert ["hypot", "1", "1", "1"] in lines
    assert ["mb_sort", "1"] in lines
    assert ["aten::hypot", "bfloat16"] in lines


def test_what_changed_for_an_operator_by_name(library: str) -> None:
    shown = output(app, "diff", "2.98.0", library, "--ops", "hypot")
    lines = [line.split() for line in shown.splitlines()]
    assert ["hypot_dense_bfloat_bfloat", "new"] in lines
    assert ["hypot_dense_float_float", "other", "code"] in lines
    assert "hypot_dense_half_half" not in shown
    assert "mb_sort" not in shown


def test_changes_as_json() -> None:
    data = printed_json(app, "diff", "2.98.0", "2.99.0")
    assert (data["before"]["release"], data["after"]["release"]) == ("2.98.0", "2.99.0")
    hypot = {"family": "hypot", "came": ["hypot_dense_bfloat_bfloat"], "went": []}
    assert hypot.items() <= data["families"][0].items()
    assert data["dtypes_came"] == {"hypot": ["bfloat16"]}
    assert data["dtypes_went"] == {}


def test_a_library_without_changes() -> None:
    assert output(app, "diff", "2.99.0", "2.99.0").count("hypot") == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("list", "hypo_*", "--torch", "2.99.0"), "no kernel matches hypo_* (did you mean hypot?)"),
        (("list", "mb_*", "--torch", "2.99.0"), "no kernel matches mb_* (`mpsmith shipped list '*'` lists all)"),
        (("list", "--ops", "mode", "--torch", "2.99.0"), "no kernel bears the name of mode: it runs on MPSGraph, "),
        (("list", "--ops", "hypo", "--torch", "2.99.0"), "no operator matches hypo (did you mean hypot"),
        (("list", "--torch", "2.5.1"), "torch 2.5.1 ships no compiled Metal kernels; 2.6.0 is the first release that"),
        (("list", "--torch", "2.99.0", "--library", "metal_4"), "torch 2.99.0 has no library metal_4; it has metal_"),
        (("list", "--torch", "2.99.0", "--wheel", "x.whl"), "name one torch: a release, a file or an address"),
        (("list", "--wheel", "absent.whl"), "there is no file or folder absent.whl"),
        (("diff", "2.98.0", "absent.whl"), "there is no file or folder absent.whl"),
        (("diff", "2.98.0", "newest"), "newest is no version of torch"),
    ],
)
def test_bad_input_is_one_clear_error(arguments: tuple[str, ...], message: str) -> None:
    error = refusal(app, *arguments)
    assert error.startswith(message)
    assert "\n" not in error
