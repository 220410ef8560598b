"""The public Metal projects: downloaded or checked out, compiled, and their kernels run."""

from __future__ import annotations

import hashlib
import io
import tarfile
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from metal_corpus import __main__ as command
from metal_corpus import executing
from metal_corpus import projects as projects_module
from metal_corpus.compiling import compile_project
from metal_corpus.executing import execute_project, spread
from metal_corpus.projects import Project, parse_trees, projects, select_projects, tree_of
from metal_corpus.recipes import RECIPES, Recipe, RecipeCall
from mpsmith.errors import MpsmithError

TO_COMPILE = Project(
    name="made-up",
    files=("*.metal",),
    git="https://example.org/made-up",
    commit="0123456789abcdef",
    root="made",
    without=("part.metal",),
    include=("include",),
    define=("COUNT=4",),
    before=("common.metal",),
)
FILES = {
    "made/common.metal": "#include <metal_stdlib>\ninline float twice(float x) { return 2 * x; }\n",
    "made/include/more.h": "constant float more = COUNT;\n",
    "made/good.metal": '#include "more.h"\nkernel void good(device float* o) { o[0] = twice(more); }\n',
    "made/part.metal": "part of another file\n",
    "made/tensor.metal": "#include <metal_tensor>\n",
    "made/wrong.metal": "kernel void wrong(device float* o) {\n  o[0] = unknown; }\n",
}
TO_RUN = Project(name="made-up", files=("*.metal",))
SOURCE = """#include <metal_stdlib>
using namespace metal;
constant int factor [[function_constant(0)]];
#define POSITION uint i [[thread_position_in_grid]]
kernel void twice_float(device const float* x, device float* y, POSITION) { y[i] = 2 * x[i]; }
kernel void thrice_float(device const float* x, device float* y, POSITION) { y[i] = 3.001 * x[i]; }
kernel void twice_int(device const int* x, device int* y, POSITION) { y[i] = factor * x[i]; }
kernel void beyond_float(device const float* x, device float* y, POSITION) { y[i] = x[i + 9]; }
"""


def _times(word: str, name: str) -> RecipeCall:
    x = torch.arange(8, dtype=torch.float32 if name == "float" else torch.int32)
    expected = x * {"twice": 2, "thrice": 3, "beyond": 1}[word]
    out = torch.full_like(x, 77)
    return RecipeCall([x, out], {1: expected.double() if name == "float" else expected}, 8)


MADE_UP_RECIPES = (
    Recipe("times", "made-up", "times.metal", "(?P<word>twice|beyond)_(?P<name>float)", _times),
    Recipe("integers", "made-up", "times.metal", "(?P<word>twice)_(?P<name>int)", _times, constants={0: 2}),
    Recipe("three times", "made-up", "times.metal", "(?P<word>thrice)_(?P<name>float)", _times),
)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


@pytest.fixture
def archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    """TO_COMPILE as an archive, with one member outside of its folder and one that is not Metal."""
    monkeypatch.setenv("MPSMITH_CACHE", str(tmp_path / "cache"))
    path = tmp_path / "made-up-1.tar.gz"
    with tarfile.open(path, "w:gz") as members:
        for name, text in {**FILES, "../outside.metal": "x", "made/setup.py": "raise SystemExit"}.items():
            member = tarfile.TarInfo(name)
            member.size = len(text)
            members.addfile(member, io.BytesIO(text.encode()))
    checksum = hashlib.sha256(path.read_bytes()).hexdigest()
    return replace(TO_COMPILE, archive=path.as_uri(), sha256=checksum, git="", commit="")


class TestList:
    def test_every_project_has_one_origin(self) -> None:
        for project in projects():
            assert project.files
            assert bool(project.archive) != bool(project.git)
            assert len(project.sha256) == 64 if project.archive else len(project.commit) == 40

    def test_rejects_unknown_names_and_trees(self, tmp_path: Path) -> None:
        assert [p.name for p in select_projects(["candle", "mlx"])] == ["mlx", "candle"]
        with pytest.raises(MpsmithError, match=r"no project mxl; the list has mlx, "):
            select_projects(["mxl"])
        assert parse_trees([f"mlx={tmp_path}"]) == {"mlx": tmp_path}
        with pytest.raises(MpsmithError, match="give PROJECT=FOLDER"):
            parse_trees(["mlx"])


class TestDownload:
    def test_keeps_only_metal_files_inside_the_folder(self, archive: Project) -> None:
        folder = tree_of(archive)
        assert folder is not None
        assert {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()} == set(FILES)
        assert tree_of(replace(archive, sha256="")) == folder
        assert not (folder.parent / "outside.metal").exists()

    def test_rejects_another_checksum(self, archive: Project) -> None:
        with pytest.raises(MpsmithError, match="the checksum differs"):
            tree_of(replace(archive, sha256="0" * 64))

    def test_a_repository_is_not_downloaded(self) -> None:
        assert tree_of(replace(TO_COMPILE, name="not checked out")) is None


def test_compiled_files_are_accepted_refused_or_not_supported(tree: Path) -> None:
    pytest.importorskip("ziglang")
    good, tensor, wrong = compile_project(TO_COMPILE, tree)
    assert (good.file, good.result, good.reason) == ("good.metal", "accepted", "")
    assert (tensor.file, tensor.result) == ("tensor.metal", "not supported")
    assert tensor.reason.endswith("the simulator does not support tensors")
    assert (wrong.file, wrong.result) == ("wrong.metal", "refused")
    assert wrong.reason == "wrong.metal:2: use of undeclared identifier 'unknown'"
    with_mistake = replace(TO_COMPILE, mistakes={"wrong.metal": "a typo", "good.metal": "nothing"})
    good, _, wrong = compile_project(with_mistake, tree)
    assert (good.result, wrong.result) == ("accepted", "own mistake")
    assert wrong.reason.endswith("; a typo")


class TestRunning:
    @pytest.fixture
    def tree(self, tmp_path: Path) -> Path:
        (tmp_path / "times.metal").write_text(SOURCE)
        return tmp_path

    def test_results_agree_disagree_or_are_stopped(self, tree: Path) -> None:
        pytest.importorskip("ziglang")
        runs = {(r.kernel, r.mode): r for r in execute_project(TO_RUN, tree, 0, 1, MADE_UP_RECIPES)}
        assert {key: run.outcome for key, run in runs.items()} == {
            ("beyond_float", "fast"): "stopped",
            ("beyond_float", "checked"): "stopped",
            ("twice_float", "fast"): "agrees",
            ("twice_int", "fast"): "agrees",
            ("twice_int", "checked"): "agrees",
            ("thrice_float", "fast"): "disagrees",
            ("thrice_float", "checked"): "disagrees",
        }
        wrong = runs["thrice_float", "fast"].reason
        assert wrong.startswith("argument 1: 7 of 8 are wrong, such as [1], which is 3.00")
        assert wrong.endswith("and not 3.0")
        assert runs["twice_float", "fast"].matching == 2

    def test_a_known_defect_must_show(self, tree: Path) -> None:
        pytest.importorskip("ziglang")
        recipes = [replace(r, defect="it is known") for r in MADE_UP_RECIPES if not r.constants]
        outcomes = {r.kernel: (r.outcome, r.reason) for r in execute_project(TO_RUN, tree, 0, 0, recipes)}
        assert outcomes["thrice_float"][0] == "their defect"
        assert outcomes["thrice_float"][1].startswith("it is known (argument 1: 7 of 8 are wrong")
        assert outcomes["twice_float"] == ("disagrees", "the known defect does not show")

    def test_names_are_spread(self) -> None:
        assert spread("abcdefgh", 3) == ["a", "c", "f"]
        assert spread("ab", 0) == spread("ab", 5) == ["a", "b"]

    @pytest.mark.parametrize("action", ["compile", "run"])
    def test_the_command_writes_a_page_and_fails_with_a_kernel(
        self, action: str, tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        pytest.importorskip("ziglang")
        monkeypatch.setattr(projects_module, "projects", lambda: [TO_RUN])
        monkeypatch.setattr(command, "RECIPES", MADE_UP_RECIPES)
        page = tmp_path / "page.md"
        status = command.main([action, "--tree", f"made-up={tree}", "--output", str(page)])
        assert status == (1 if action == "run" else 0)
        assert ("Failures" in page.read_text()) == (action == "run")
        assert "| made-up" in page.read_text()


EXAMPLES = """
i1_bfloat_bfloat copysign_uchar nextafter_kernel_half complex_mul_half cross_short tril_indices_int
repeat_interleave_int32_t renorm_half searchsorted_char_long_sorter histogramdd_half kernel_index_offset im2col_bool
naive_matmul_bfloat unfold_backward_half int4pack_mm_64_bfloat weight_to_int4pack upsample_bicubic2d_half
accumulate_chunk_u8 elementwise_min_bf16 accumulate_scale_f16 scale_inplace_i64 stft_rfft_frame stft_irfft_frame
stft_overlap_add stft_normalize_ola adam_step int8_matmul_tiled int8_matmul_dequant dequantize_int32_to_fp16
fp8_e5m2fnuz_to_half_arithmetic_kernel fp8_to_half_kernel fp8_e8m0fnu_to_float_arithmetic_kernel
float_to_fp8_e5m2_arithmetic_kernel float_to_fp8_kernel float_to_fp8_e4m3fnuz_arithmetic_kernel fp4x2_to_half_kernel
float_to_fp4x2_kernel fp8_lut_to_half_kernel flash_attention_forward
"""


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda recipe: recipe.name)
def test_a_kernel_that_writes_nothing_does_not_pass(recipe: Recipe) -> None:
    assert recipe.project in {project.name for project in projects()}
    examples = [kernel for kernel in EXAMPLES.split() if recipe.matches(kernel)]
    assert examples
    for kernel in examples:
        call = recipe.call_of(kernel)
        assert call is not None
        assert any(executing._difference(call, index) for index in call.expected)
        assert not any(expected.isnan().all() for expected in call.expected.values())


@pytest.mark.network
def test_a_package_is_downloaded_and_accepted() -> None:
    (project,) = select_projects(["mps-bitsandbytes"])
    folder = tree_of(project)
    assert folder is not None
    refused = {r.file: r.reason for r in compile_project(project, folder) if r.result != "accepted"}
    # Metal's frexp takes a reference, and the file passes a pointer.
    assert list(refused) == ["fp8_matmul.metal"]
    assert "69: no matching function for call to 'frexp'; Metal's frexp" in refused["fp8_matmul.metal"]
