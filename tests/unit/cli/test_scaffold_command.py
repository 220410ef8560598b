"""`mpsmith scaffold` and `mpsmith next` as they are typed: what they write, what they refuse, what they say next."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from mpsmith.cli import app
from mpsmith.registry.files import edit, load
from support.commands import output, printed_json, refusal

run = partial(output, app, "scaffold")
refused = partial(refusal, app, "scaffold")


@pytest.fixture(autouse=True)
def registry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "registry"
    folder.mkdir()
    monkeypatch.setenv("MPSMITH_REGISTRY", str(folder))
    return folder


@pytest.fixture(autouse=True)
def no_test_database(monkeypatch: pytest.MonkeyPatch) -> None:
    """These tests need no OpInfos, and importing torch's takes seconds."""
    from mpsmith.scaffold.generation import generate
    from mpsmith.scaffold.operators.opinfos import OpInfos

    monkeypatch.setattr(generate, "opinfos_for", lambda operator: OpInfos((operator,), None))
    monkeypatch.setattr(generate, "supported_dtypes", lambda name, device: frozenset())


def test_a_gap_gets_files_an_entry_and_the_next_command(tmp_path: Path, registry: Path) -> None:
    out = tmp_path / "mode"
    printed = run("aten::mode", "--out", str(out))
    assert (out / "kernels" / "mode" / "mode.metal").is_file()
    assert load(registry)["aten::mode"].current_status.value == "scaffolded"  # type: ignore[union-attr]
    assert f"next: python -m pytest {out / 'tests'}" in printed


def test_a_dry_run_writes_nothing(tmp_path: Path, registry: Path) -> None:
    printed = run("mode", "--target", "extension", "--out", str(tmp_path / "mode"), "--dry-run")
    assert "src/mode.mm" in printed
    assert not (tmp_path / "mode").exists()
    assert not load(registry)


def test_an_entry_that_is_further_stays(tmp_path: Path, registry: Path) -> None:
    edit(registry, "aten::mode", {"status": "upstreamed"}, add=True)
    run("mode", "--out", str(tmp_path / "mode"))
    assert load(registry)["aten::mode"].status.value == "upstreamed"  # type: ignore[union-attr]


def test_a_finished_kernel_is_not_scaffolded_again(tmp_path: Path, registry: Path) -> None:
    edit(registry, "aten::mode", {"status": "implemented", "kernel": "mode"}, add=True)
    assert "implemented already, in mpsmith.kernels.mode" in refused("mode", "--out", str(tmp_path / "mode"))


def test_an_operator_that_shares_a_kernel_gets_that_one(tmp_path: Path) -> None:
    printed = run("heaviside_", "--target", "extension", "--out", str(tmp_path / "h"))
    assert "aten::heaviside_ shares the kernel of aten::heaviside" in printed
    assert (tmp_path / "h" / "src" / "heaviside.mm").is_file()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("softshrnk",), "did you mean softshrink"),
        (("torchvision::nms",), "not an operator of aten"),
        (("add",), "native kernels on mps since torch 1.12.1"),
        (("_foobar",), "no user of an mps device can reach aten::_foobar"),
        (("conv2d",), "composed of other operators"),
        (("svd",), r"composed of other operators .*; mps lacks linalg_svd: `pip install --upgrade 'torch>=2.14.1'`"),
        (("torch.linalg.svd(x)",), "torch always runs aten::linalg_svd on the CPU; instead: `pip install"),
        (("nn.LSTM",), "`mpsmith why nn.LSTM` says"),
        (("mode", "--target", "shaders"), r"not a target; there are shader, .* \(did you mean shader"),
        (("mode", "--kind", "reductions"), r"not a kind of kernel; .* \(did you mean reduction"),
        (("mode", "--from-kernel"), "--from-kernel needs --target upstream"),
        (("mode", "--torch", "1.0.0"), "mpsmith check --setup --torch 1.0.0"),
    ],
)
def test_rejects_bad_arguments(arguments: tuple[str, ...], message: str, tmp_path: Path) -> None:
    import re

    assert re.search(message, refused(*arguments, "--out", str(tmp_path / "x")))
    assert not (tmp_path / "x").exists()


def test_force_scaffolds_a_native_operator(tmp_path: Path) -> None:
    run("softshrink", "--force", "--out", str(tmp_path / "s"))
    assert (tmp_path / "s" / "kernels" / "softshrink" / "softshrink.py").is_file()


def test_the_kind_can_be_chosen(tmp_path: Path) -> None:
    printed = run("mode", "--kind", "scan", "--target", "extension", "--out", str(tmp_path / "m"))
    assert "scan (by your choice)" in printed
    assert "running" in (tmp_path / "m" / "src" / "mode_metal.h").read_text()


def test_rejects_a_folder_with_other_files(tmp_path: Path) -> None:
    out = tmp_path / "mine"
    out.mkdir()
    (out / "thesis.txt").write_text("years of work")
    assert "is not empty and holds no scaffold" in refused("mode", "--out", str(out))
    assert [path.name for path in out.iterdir()] == ["thesis.txt"]


def test_rejects_the_scaffold_of_another_operator(tmp_path: Path) -> None:
    run("mode", "--out", str(tmp_path / "o"))
    assert "holds the scaffold of aten::mode" in refused("take", "--out", str(tmp_path / "o"))


def test_hand_work_survives_inside_of_the_marks_and_outside(tmp_path: Path) -> None:
    out = tmp_path / "mode"
    run("mode", "--target", "extension", "--out", str(out))
    host = out / "src" / "mode.mm"
    host.write_text(host.read_text().replace("TORCH_CHECK_NOT_IMPLEMENTED(", "MY_OWN_LINE(", 1))
    assert "unchanged" in run("mode", "--target", "extension", "--out", str(out))
    host.write_text(host.read_text().replace("static mps_support::Library& library()", "static auto& mine()"))
    run("mode", "--target", "extension", "--out", str(out))
    assert "static auto& mine()" in host.read_text()
    assert "MY_OWN_LINE(" in host.read_text()


def test_next_ranks_unowned_gaps(registry: Path) -> None:
    edit(registry, "aten::mode", {"status": "scaffolded"}, add=True)
    edit(registry, "aten::linalg_eig", {"owner": "somebody"}, add=True)
    rows = printed_json(app, "next", "-n", "200")["suggestions"]
    names = [row["operator"] for row in rows]
    assert "aten::mode" not in names
    assert names[-1] == "aten::linalg_eig"
    scores = [row["score"] for row in rows if row["owner"] is None]
    assert scores == sorted(scores, reverse=True)


def test_next_sorts_finished_families_by_use(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MPSMITH_REGISTRY")
    rows = printed_json(app, "next", "-n", "200")["finished"]
    assert rows[0]["operators"][0] == "aten::linalg_eig"
    families = {row["family"] for row in rows}
    assert "mode" in families
    assert not families & {"convolution", "svd", "heaviside"}  # without host code; in a later release
    shown = output(app, "next")
    assert "mpsmith scaffold aten::linalg_eig --target upstream --from-kernel" in shown
    assert "estimated" not in shown


def test_next_keeps_within_the_columns_of_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    def widest(columns: int) -> int:
        monkeypatch.setenv("COLUMNS", str(columns))
        return max(map(len, output(app, "next", "-n", "10").splitlines()))

    assert widest(1000) > 120
    assert widest(120) <= 120


def test_scaffold_prints_json(tmp_path: Path) -> None:
    out = tmp_path / "mode"
    planned = printed_json(app, "scaffold", "aten::mode", "--out", str(out), "--dry-run")
    assert (planned["written"], out.exists()) == (False, False)
    (scaffolded,) = planned["scaffolds"]
    assert (scaffolded["operator"], scaffolded["target"], scaffolded["kind"]) == ("aten::mode", "shader", "sort")
    done = printed_json(app, "scaffold", "aten::mode", "--out", str(out))
    assert done["written"]
    for file in done["scaffolds"][0]["files"]:
        assert Path(file["file"]).is_file()
