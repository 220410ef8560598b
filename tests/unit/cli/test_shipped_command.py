from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

from mpsmith.audit.model.verdicts import CaseVerdict, Grade, UlpSensitivity
from mpsmith.audit.running import finding_launches as finding_launches
from mpsmith.audit.shipped.finding_result import FindingResult, FurthestElement
from mpsmith.cli.shipped import app
from support.air_kernels import bitcode, buffer, builtin, kernel
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
    data = printed_json(app, "list", "hypot_dense_f*", "--wheel", library)
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


def test_shows_changes_between_two_releases() -> None:
    lines = [line.split() for line in output(app, "diff", "2.98.0", "2.99.0").splitlines()]
    for row in (["new", "1"], ["gone", "1"], ["other", "code", "1"], ["the", "same", "1"]):
        assert row in lines
    assert ["hypot", "1", "1", "1"] in lines
    assert ["mb_sort", "1"] in lines
    assert ["aten::hypot", "bfloat16"] in lines


def test_shows_changes_of_an_operator(library: str) -> None:
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


def test_rejects_a_module_that_is_not_bitcode(library: str) -> None:
    error = refusal(app, "list", "hypot_dense_float_float", "--wheel", library)
    assert error == f"{library}: kernel hypot_dense_float_float: its module is not LLVM bitcode"


def test_a_library_without_changes() -> None:
    assert output(app, "diff", "2.99.0", "2.99.0").count("hypot") == 0


def hypot(*parameters: str, scale: str = "float", size: int = 4) -> bytes:
    """A module of `hypot_dense_float_float` with a struct whose last member has this type."""
    layout = (
        '!51 = !{i32 0, i32 8, i32 3, !"long", !"__elems"}\n'
        '!50 = !{!"air.struct_type_info", !51, i32 0, i32 24, i32 0, !"metal::array", !"sizes", '
        f'i32 24, i32 {size}, i32 0, !"{scale}", !"scale"}}'
    )
    structure = '!"air.struct_type_info", !50'
    return bitcode(
        kernel(
            "hypot_dense_float_float",
            "ptr addrspace(1) %o, ptr addrspace(2) %p, i32 %t",
            [
                buffer("output", "float", 0),
                buffer("params", "HypotParams", 1, structure, *parameters, space="constant", size=24 + size),
                builtin("thread_position_in_grid"),
            ],
            "",
            metadata=f'{layout}\n!60 = !{{!"air.max_work_group_size", i32 64}}',
            entry="!{ptr @NAME, !1, !2, !60}",
        )
    )


@pytest.fixture
def releases(tmp_path: Path) -> tuple[str, str]:
    """Two libraries whose kernel has other arguments in the second one."""
    modules = {"hypot_dense_float_float": hypot()}, {"hypot_dense_float_float": hypot(scale="double", size=8)}
    old, new = (write_metal_library(tmp_path / f"{n}.metallib", module) for n, module in enumerate(modules))
    return str(old), str(new)


def test_shows_the_arguments_of_a_kernel(releases: tuple[str, str]) -> None:
    shown = output(app, "list", "hypot_dense_float_float", "--wheel", releases[0])
    lines = [line.split() for line in shown.splitlines()]
    for words in (
        "family hypot (aten::hypot)",
        "threadgroup at most 64 threads",
        "subnormals are kept",
        "0 output float 4 read and write",
        "1 params HypotParams 28 read, constant",
        "params.sizes[3] long 0 24",
        "params.scale float 24 4",
        "thread_position_in_grid uint thread_position_in_grid",
    ):
        assert words.split() in lines, shown


def test_a_kernel_as_json(releases: tuple[str, str]) -> None:
    data = printed_json(app, "list", "hypot_dense_float_float", "--wheel", releases[1])
    assert (data["name"], data["operators"], data["max_threads"]) == ("hypot_dense_float_float", ["hypot"], 64)
    assert [(each["name"], each["index"], each["access"]) for each in data["buffers"]] == [
        ("output", 0, "read_write"),
        ("params", 1, "read"),
    ]
    assert [(each["name"], each["offset"]) for each in data["buffers"][1]["fields"]] == [("sizes", 0), ("scale", 24)]


def test_arguments_that_changed(releases: tuple[str, str]) -> None:
    shown = output(app, "diff", *releases, "--arguments")
    assert "other arguments: 1 of 1 kernel with other code" in shown
    changes = [line for line in shown.splitlines() if line.startswith(("  - ", "  + "))]
    assert changes == [
        "  - buffer 1 params: HypotParams, 28 bytes, read, constant",
        "  - params.scale: float at 24, 4 bytes",
        "  + buffer 1 params: HypotParams, 32 bytes, read, constant",
        "  + params.scale: double at 24, 8 bytes",
    ]
    data = printed_json(app, "diff", *releases, "--arguments")
    assert data["arguments"][0]["kernels"] == ["hypot_dense_float_float"]
    assert printed_json(app, "diff", *releases)["arguments"] is None


def test_code_that_changed_with_the_same_arguments(releases: tuple[str, str], tmp_path: Path) -> None:
    modules = {"hypot_dense_float_float": hypot() + b"other"}
    same = str(write_metal_library(tmp_path / "same.metallib", modules))
    assert "other arguments: 0 of 1 kernel with other code" in output(app, "diff", releases[0], same, "--arguments")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("list", "hypo_*", "--torch", "2.99.0"), "no kernel matches hypo_* (did you mean hypot?)"),
        (("list", "mb_*", "--torch", "2.99.0"), "no kernel matches mb_* (`mpsmith shipped list '*'` lists all)"),
        (("list", "hypot_dense_float", "--torch", "2.99.0"), "no kernel matches hypot_dense_float (did you mean hypot"),
        (("list", "--ops", "mode", "--torch", "2.99.0"), "no kernel is named after mode: it runs on MPSGraph, "),
        (("list", "--ops", "hypo", "--torch", "2.99.0"), "no operator matches hypo (did you mean hypot"),
        (("list", "--torch", "2.5.1"), "torch 2.5.1 ships no compiled Metal kernels; 2.6.0 is the first release that"),
        (("list", "--torch", "2.99.0", "--library", "metal_4"), "torch 2.99.0 has no library metal_4; it has metal_"),
        (("list", "--torch", "2.99.0", "--wheel", "x.whl"), "name one torch: a release, a file or an address"),
        (("list", "--wheel", "absent.whl"), "there is no file or folder absent.whl"),
        (("diff", "2.98.0", "absent.whl"), "there is no file or folder absent.whl"),
        (("diff", "2.98.0", "newest"), "newest is not a version of torch"),
    ],
)
def test_bad_input_is_one_clear_error(arguments: tuple[str, ...], message: str) -> None:
    error = refusal(app, *arguments)
    assert error.startswith(message)
    assert "\n" not in error


PLACE = FurthestElement("outputs", 0, 0, "nan", "inf", "0xffc00000", "0x7f800000")


@pytest.fixture
def launched(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, list[str]]]:
    """The releases and findings that were asked for; the first is wrong, the second not tried, all others right."""
    launches: list[tuple[str, list[str]]] = []

    def launch_findings(release, findings, on_result):  # type: ignore[no-untyped-def]
        launches.append((release, [each.name for each in findings]))
        results = []
        for number, each in enumerate(findings):
            verdict = CaseVerdict.PASSED if number else CaseVerdict.WRONG
            grade = Grade.DISPATCH_ONLY if number == 1 else Grade.SHIPPED_KERNEL
            place, moved = (None, None) if number else (PLACE, UlpSensitivity.INSENSITIVE)
            results.append(FindingResult(each.name, verdict, grade, "", ("k",), ("MPSGraph",), "(x)", place, moved))
            on_result(results[-1])
        return results

    monkeypatch.setattr(finding_launches, "launch_findings", launch_findings)
    return launches


NAMES = ("lgamma-of-infinity", "elu-of-small-numbers", "i0-of-halves")


def test_prints_a_line_per_finding(launched: list[tuple[str, list[str]]]) -> None:
    assert output(app, "wrong", *NAMES, "--torch", "2.99.0").splitlines() == [
        "WRONG      lgamma-of-infinity: nan, CPU inf [not ULP-sensitive] (k)",
        "not tried  elu-of-small-numbers: MPSGraph",
        "right      i0-of-halves",
    ]
    assert launched == [("2.99.0", list(NAMES))]


def test_writes_a_script_and_json(launched: list[tuple[str, list[str]]], tmp_path: Path) -> None:
    script = tmp_path / "check.py"
    printed = printed_json(app, "wrong", "--torch", "2.99.0", "--script", str(script))
    assert printed["release"] == "2.99.0"
    assert [each["name"] for each in printed["findings"]] == launched[0][1]
    assert printed["findings"][0]["place"]["given_bits"] == "0xffc00000"
    compile(script.read_text(), "check.py", "exec")


def test_rejects_an_unknown_finding_with_a_hint() -> None:
    assert "no finding is called lgama-of-infinity (did you mean lgamma-of-infinity" in refusal(
        app, "wrong", "lgama-of-infinity", "--torch", "2.99.0"
    )
