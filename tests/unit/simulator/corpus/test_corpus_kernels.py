"""Kernels of public projects: how they are called, run and compared; the sources in here are ours."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from typer.testing import CliRunner

from mpsmith.cli import app
from mpsmith.simulator.corpus import executing as executing_module
from mpsmith.simulator.corpus import projects as projects_module
from mpsmith.simulator.corpus import recipes as recipes_module
from mpsmith.simulator.corpus.executing import execute_project, spread
from mpsmith.simulator.corpus.kernels_page import page, summary
from mpsmith.simulator.corpus.projects import Project, projects
from mpsmith.simulator.corpus.recipes import RECIPES, Recipe, RecipeCall

MADE_UP = Project(
    name="made-up",
    archive="",
    sha256="",
    git="https://example.org/made-up",
    commit="0123456789abcdef",
    root=".",
    files=("*.metal",),
    without=(),
    include=(),
    define=(),
    before=(),
)
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
    Recipe(
        "times, in whole numbers", "made-up", "times.metal", "(?P<word>twice)_(?P<name>int)", _times, constants={0: 2}
    ),
    Recipe("three times", "made-up", "times.metal", "(?P<word>thrice)_(?P<name>float)", _times),
)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    (tmp_path / "times.metal").write_text(SOURCE)
    return tmp_path


class TestRunningCorpusKernels:
    def test_results_agree_disagree_or_are_stopped(self, tree: Path) -> None:
        pytest.importorskip("ziglang")
        runs = {(r.kernel, r.mode): r for r in execute_project(MADE_UP, tree, 0, 1, MADE_UP_RECIPES)}
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
        assert runs["twice_float", "fast"].of == 2

    def test_a_known_defect_counts_apart_and_must_show(self, tree: Path) -> None:
        pytest.importorskip("ziglang")
        recipes = [replace(r, defect="it is known") for r in MADE_UP_RECIPES if not r.constants]
        outcomes = {r.kernel: (r.outcome, r.reason) for r in execute_project(MADE_UP, tree, 0, 0, recipes)}
        assert outcomes["thrice_float"][0] == "their defect"
        assert outcomes["thrice_float"][1].startswith("it is known (argument 1: 7 of 8 are wrong")
        assert outcomes["twice_float"] == ("disagrees", "its defect does not show")

    def test_names_are_spread(self) -> None:
        assert spread("abcdefgh", 3) == ["a", "c", "f"]
        assert spread("abc", 3) == spread("abc", 0) == ["a", "b", "c"]

    def test_the_command_writes_a_page_and_fails_where_one_disagrees(
        self, tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        pytest.importorskip("ziglang")
        good = [recipe for recipe in MADE_UP_RECIPES if recipe.constants]
        monkeypatch.setattr(projects_module, "projects", lambda: [MADE_UP])
        monkeypatch.setattr(recipes_module, "RECIPES", MADE_UP_RECIPES)
        written = tmp_path / "page.md"
        arguments = ["shader", "corpus-kernels", "--tree", f"made-up={tree}", "--json", "--output", str(written)]
        done = CliRunner().invoke(app, arguments)
        assert done.exit_code == 1
        assert {r["kernel"] for r in json.loads(done.stdout) if r["outcome"] == "agrees"} == {
            "twice_float",
            "twice_int",
        }
        assert "| made-up | times.metal" in " ".join(written.read_text().split())
        monkeypatch.setattr(recipes_module, "RECIPES", good)
        assert CliRunner().invoke(app, arguments).exit_code == 0
        assert "What does not agree" not in written.read_text()

    def test_pages_name_what_was_not_run(self) -> None:
        assert "for want of a checkout: made-up (https://example.org/made-up, 0123456789ab)" in page([], [MADE_UP])
        assert summary([]).startswith("0 kernels of 0 projects ran: 0 agree")


# One kernel for each recipe.
KERNELS = """
mlx: vn_Absfloat32float32 gn4large_Tanhbfloat16bfloat16 v2_BitwiseInvertuint64uint64 v_Coshcomplex64complex64
mlx: vvn_Addfloat16 g3_Powerfloat32 g1large_Multiplybfloat16 gn2_Remainderint8 ss_LeftShiftuint16 sv2_LogicalAndbool_
mlx: vsn_Selectfloat16 g2_copyfloat32int8 vn_copybool_float16 sn_copyint32bool_ arangefloat16
mlx: looped_softmax_precise_bfloat16 block_logsumexp_float32 layer_norm_loopedfloat16 rmsfloat32 argmin_uint8
mlx: all_reduce_sumuint8 all_reduce_andfloat16 row_reduce_simple_prodint16 row_reduce_looped_large_1_reduce_maxfloat32
mlx: init_reduce_minint8 contig_scan_reverse_inclusive_max_float16_float16 contig_scan_exclusive_prod_int32_int32
mlx: searchsorted_bfloat16_left rope_single_freqs_float16
candle: gelu_erf_bf16_strided round_f32 bsub_u8_lstrided eq_i64_cs affine_u32_strided elu_f16 cast_f32_u8 fill_bf16
candle: where_u32_f16 fast_mul_u8_strided fast_argmax_bf16 softmax_f16 layernorm_f32 rmsnorm_bf16 rope_thd_f32
candle: rope_i_f16 asort_desc_u8 is_u8_f32 gather_i64_i64 sa_u32_f16 s_u8_bf16 ia_i64_u8 im2col_u8 avg_pool2d_u32
mistral.rs: softcap_float fused_glu_bfloat rmsnorm_residual_f16 bitwise_xor_int64_t bitwise_not_uint8_t
mistral.rs: fp8_to_dtype_half dtype_to_fp8_bfloat16_t fp8_vector_dequant_float dequant_fp8_blockwise_half
mistral.rs: moe_weighted_reduce_flat_half pack_8bit pack_3bit dequantize_3bit_half f8q8_dequantize_half
mistral.rs: softmax_with_sinks_half kernel_dequantize_fp4_half kernel_dequantize_int8_float
pytorch: i1_bfloat_bfloat copysign_uchar nextafter_kernel_half complex_mul_half cross_short tril_indices_int
pytorch: repeat_interleave_int32_t renorm_half searchsorted_char_long_sorter histogramdd_half kernel_index_offset
pytorch: im2col_bool naive_matmul_bfloat unfold_backward_half int4pack_mm_64_bfloat weight_to_int4pack
pytorch: upsample_bicubic2d_half
gpt-oss: gptoss_f32_bf16w_rmsnorm gptoss_bf16_f32_embeddings gptoss_mf4_f32_convert gptoss_f32_accumulate_e4
gpt-oss: gptoss_f32_topk_softmax_e128_k4 gptoss_f32_expert_routing_metadata gptoss_f32_scatter_e4
gpt-oss: gptoss_f32_gather_and_accumulate_e4 gptoss_bf16_fill_random gptoss_u32_fill_random gptoss_f32_rope
kernels-community: gelu_fast_f16 mul_and_silu_f32 fatrelu_and_mul_f16 relu_forward_kernel_half
torchao: int5pack_mm_64_half
mccl: accumulate_chunk_u8 elementwise_min_bf16 accumulate_scale_f16 scale_inplace_i64 stft_rfft_frame
mccl: stft_irfft_frame stft_overlap_add stft_normalize_ola
metal-gauss: adam_step
mps-bitsandbytes: int8_matmul_tiled int8_matmul_dequant dequantize_int32_to_fp16
fp4-fp8-for-torch-mps: fp8_e5m2fnuz_to_half_arithmetic_kernel fp8_to_half_kernel
fp4-fp8-for-torch-mps: fp8_e8m0fnu_to_float_arithmetic_kernel float_to_fp8_e5m2_arithmetic_kernel float_to_fp8_kernel
fp4-fp8-for-torch-mps: float_to_fp8_e4m3fnuz_arithmetic_kernel
fp4-fp8-for-torch-mps: fp4x2_to_half_kernel float_to_fp4x2_kernel fp8_lut_to_half_kernel
TinyChatEngine: matmul matmulInt4
evo2-metal: flash_attention_forward
"""
EXAMPLES = [
    (line.split(": ")[0], kernel) for line in KERNELS.strip().split("\n") for kernel in line.split(": ")[1].split()
]


class TestRecipes:
    @pytest.mark.parametrize(("project", "kernel"), EXAMPLES)
    def test_a_kernel_that_does_nothing_does_not_pass(self, project: str, kernel: str) -> None:
        known = [r for r in RECIPES if r.project == project and r.is_for(kernel)]
        assert known
        for recipe in known:
            call = recipe.call_of(kernel)
            assert call is not None
            assert call.expected
            for index, expected in call.expected.items():
                memory = call.arguments[index]
                assert isinstance(memory, torch.Tensor)
                assert memory.numel() == expected.numel() or index in call.reading
                assert memory.is_contiguous()
                differences = [executing_module._difference(call, i) for i in call.expected]
                assert any(differences)
                assert not expected.isnan().all()

    def test_every_recipe_has_an_example_and_a_project(self) -> None:
        listed = {project.name for project in projects()}
        for recipe in RECIPES:
            assert recipe.project in listed
            examples = [kernel for project, kernel in EXAMPLES if project == recipe.project and recipe.is_for(kernel)]
            # The same kernels lie in two projects.
            assert examples or recipe.project == "kernels-community", recipe.name
