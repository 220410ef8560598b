"""Which cases host code computed: those in which it launched something, and nothing fell back; and what is refused."""

from __future__ import annotations

import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any, cast
from unittest.mock import Mock

import pytest
import torch

from mpsmith.audit.model.verdicts import CaseVerdict, Grade, Outcome
from mpsmith.audit.running import host_code
from mpsmith.audit.running.host_code import HostCode, build_host_code, load_host_code, require_answers
from mpsmith.cli.host_code import built_folders
from mpsmith.errors import MpsmithError
from mpsmith.registry.torch_release import public_version
from mpsmith.scaffold.errors import ToolchainError
from mpsmith.scaffold.proof import setup
from mpsmith.simulator import macho
from mpsmith.simulator.errors import MachOError
from mpsmith.simulator.macho.device_kernels import WheelKernels
from mpsmith.simulator.objc import bridge
from mpsmith.simulator.opening import MpsDevice
from mpsmith.simulator.upstream import sources
from mpsmith.simulator.upstream.host_work import HostWork
from mpsmith.simulator.upstream.manifest import BuiltFile, TreeBuild, write_manifest
from mpsmith.simulator.upstream.operations import SHARED, TAGS
from support.needs import needs_metal_on_host
from support.upstream_trees import empty_tree

PASSED = Outcome(CaseVerdict.PASSED)
BUILT = TreeBuild("2.6.0", "2.6.0", (BuiltFile("Eye", ("eye.out",), "eye.so"),))


def test_a_case_in_which_a_graph_ran_is_graded_as_host_code() -> None:
    graphs = [5]
    kernels = HostCode(BUILT, count_completed=lambda: graphs[0])
    kernels.begin_case()
    assert kernels.end_case(PASSED) is None
    graphs[0] += 1
    assert kernels.end_case(PASSED) is Grade.HOST_CODE


def test_a_case_is_graded_by_its_own_launches(monkeypatch: pytest.MonkeyPatch) -> None:
    kernels = HostCode(BUILT)
    monkeypatch.setattr(bridge, "_counted", [3])
    kernels.begin_case()
    bridge._counted[0] += 1
    assert kernels.end_case(PASSED) is Grade.HOST_CODE
    assert kernels.end_case(replace(PASSED, fallbacks=("aten::eye",))) is None
    kernels.begin_case()  # the next one launches nothing
    assert kernels.end_case(PASSED) is None


def test_a_case_that_a_stand_in_answered_in_part_is_not_graded_as_host_code() -> None:
    graphs, stood_in = [0], [4]
    kernels = HostCode(BUILT, count_completed=lambda: graphs[0], stood_in=lambda: stood_in[0])
    kernels.begin_case()
    graphs[0] += 1
    assert kernels.end_case(PASSED) is Grade.HOST_CODE
    stood_in[0] += 1
    assert kernels.end_case(PASSED) is None
    kernels.begin_case()
    graphs[0] += 1
    assert kernels.end_case(PASSED) is Grade.HOST_CODE


def test_each_group_begins_with_empty_caches() -> None:
    emptied: list[str] = []
    kernels = HostCode(BUILT, empty_cache=lambda: emptied.append("cache"))
    kernels.begin_case()
    assert emptied == []
    kernels.begin_group()
    assert emptied == ["cache"]


def test_reruns_do_not_count_as_work() -> None:
    done: list[dict[str, HostWork]] = []
    kernels = HostCode(BUILT, drain_work=lambda: done.pop(0) if done else {})
    for _ in range(2):
        kernels.begin_case()
        done.append({"aten::eye.out": HostWork(1, waits=2)})
        kernels.end_case(PASSED)
        done.append({"aten::eye.out": HostWork(5, on_cpu=Counter({"aten::equal": 7}))})
    assert kernels.take_work() == {"aten::eye.out": HostWork(2, waits=4)}
    assert kernels.take_work() == {}


def test_source_is_compiled_where_the_wheel_cannot_run(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(release: str, say: object) -> None:
        raise MachOError("there is no qemu-aarch64")

    monkeypatch.setattr(host_code, "_of_wheel", refuse)
    monkeypatch.setattr(host_code, "build_host_code", lambda asked, say: (Path(asked), BUILT))
    said: list[str] = []
    assert host_code.prepare_host_code("2.6.0", said.append) == (Path("2.6.0"), BUILT)
    assert said == ["the wheel of torch 2.6.0 cannot be run here, so its source is compiled: there is no qemu-aarch64"]
    said.clear()
    assert host_code.prepare_host_code("folder", said.append) == (Path("folder"), BUILT)
    assert not said  # a folder has source


@pytest.mark.parametrize("asked", ["2.6", "v2.6.0", "main", "", "/nonexistent/pytorch"])
def test_neither_a_release_nor_a_folder_is_an_error(asked: str) -> None:
    with pytest.raises(MpsmithError, match=r"is neither a release of PyTorch such as 2\.6\.0 nor a folder"):
        build_host_code(asked, print)


def test_a_folder_without_pytorch_is_refused(tmp_path: Path) -> None:
    with pytest.raises(MpsmithError, match=r"has no aten/src/.*: give a whole checkout of PyTorch"):
        build_host_code(str(tmp_path), print)


def test_all_trees_are_looked_at_before_one_is_built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    needs_metal_on_host()
    monkeypatch.setattr(host_code, "prepare_host_code", lambda asked, say: pytest.fail("built"))
    monkeypatch.setattr("mpsmith.simulator.objc.compiler.apple_folder", lambda: tmp_path)
    for asked, refusal in (
        ((str(whole := empty_tree(tmp_path / "whole")), "nowhere"), "'nowhere' is neither"),
        (
            (str(whole), str(empty_tree(tmp_path / "half", without=SHARED[0]))),
            r"no aten/src/.*/OperationUtils\.mm: give a whole",
        ),
        ((str(whole), str(empty_tree(tmp_path / "old", without=TAGS))), r"no aten/src/.*/tags\.yaml: give a whole"),
        ((str(whole), str(whole)), "the same host code twice"),
    ):
        with pytest.raises(MpsmithError, match=refusal):
            built_folders(asked)


def test_nothing_is_fetched_where_nothing_can_be_compiled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    needs_metal_on_host()
    monkeypatch.setattr("mpsmith.simulator.objc.compiler.apple_folder", lambda: tmp_path / "none")
    monkeypatch.setattr(sources, "source_of_release", lambda release: pytest.fail("fetched"))
    for build in (lambda: built_folders(["2.6.0"]), lambda: build_host_code("2.6.0", print)):
        with pytest.raises(MpsmithError, match="fetch them once with: mpsmith check --setup"):
            build()


def test_the_installed_wheel_is_taken_where_it_can_be_run(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    fetched: list[str] = []
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr(macho, "arm64_command", list)
    monkeypatch.setattr(setup, "compiler_is_set_up", lambda: bool(fetched))
    monkeypatch.setattr(setup, "set_up_compiler", lambda say: fetched.append("compiler"))
    monkeypatch.setattr(host_code, "_of_wheel", lambda release, say: (Path(f"/cache/{release}"), BUILT))
    assert built_folders(["auto"]) == built_folders(["auto"]) == [f"/cache/{public_version(torch.__version__)}"]
    assert fetched == ["compiler"]

    def offline(say: object) -> None:
        raise ToolchainError("cannot fetch ziglang")

    fetched.clear()
    monkeypatch.setattr(setup, "set_up_compiler", offline)
    assert built_folders(["auto"]) == []
    assert "without the host code of torch" in (said := "".join(capsys.readouterr()))
    assert "fetch ziglang" in said

    def refusing() -> None:
        raise MachOError("there is no qemu-aarch64 to run arm64 code")

    monkeypatch.setattr(macho, "arm64_command", refusing)
    monkeypatch.setattr(setup, "set_up_compiler", lambda say: pytest.fail("fetched for nothing"))
    assert built_folders(["auto"]) == []
    assert "there is no qemu-aarch64" in "".join(capsys.readouterr())
    monkeypatch.setattr(sys, "platform", "darwin")
    monkeypatch.setattr(host_code, "_of_wheel", lambda release, say: pytest.fail("a Mac has its own"))
    assert built_folders(["auto"]) == []


def test_a_real_device_has_its_own_host_code(tmp_path: Path) -> None:
    with pytest.raises(MpsmithError, match="--host-code is for the simulated device"):
        load_host_code(str(tmp_path), None, MpsDevice(False, None, cast(Any, None)))


def test_a_build_that_is_gone_is_named(tmp_path: Path) -> None:
    write_manifest(tmp_path, BUILT)  # its library is nowhere
    with pytest.raises(MpsmithError, match="is gone: run the audit again without --resume"):
        load_host_code(str(tmp_path), None, MpsDevice(True, "2.13.0", cast(Any, None)))


def test_a_run_records_its_macos() -> None:
    facts = {"source": "2.6.0", "kernels": "2.6.0", "overloads": ["aten::eye.out"]}
    assert HostCode(BUILT).facts == facts | {"macos": "26"}
    assert HostCode(BUILT, "14.0").facts == facts | {"macos": "14.0"}


def test_host_code_that_answers_no_call_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch, "ones", lambda size, device: torch.zeros(size))  # no simulated device is loaded here
    kernels = WheelKernels(Mock(), [])
    require_answers(kernels, "2.13.0")
    kernels.stood_in["add.Tensor", "the simulated Metal host has no such method"] += 1
    with pytest.raises(MpsmithError, match=r"torch 2\.13\.0 answers no calls here: aten::add\.Tensor: the sim"):
        require_answers(kernels, "2.13.0")
