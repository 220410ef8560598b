"""What is seen of an operator on the CPU, and what its decomposition says."""

from __future__ import annotations

import pytest
import torch
from torch.testing._internal import common_methods_invocations

from mpsmith.scaffold.operators.observation import INTEGERS, ObservedTensor, Size
from mpsmith.scaffold.operators.observing import observed
from mpsmith.scaffold.operators.references import reference_of
from mpsmith.scaffold.operators.source import source_of
from mpsmith.scaffold.targets.upstream.opinfo_entry import with_opinfo


class TestObserved:
    def test_each_output_has_its_own_dtype(self) -> None:
        seen = observed("frexp.Tensor_out")
        assert seen is not None
        assert seen.results == (ObservedTensor("T", "like self"), ObservedTensor("int32", "like self"))
        assert seen.has_meta

    def test_shapes_are_reduced_by_dim_and_keepdim(self) -> None:
        seen = observed("mode")
        assert seen is not None
        assert seen.results == (ObservedTensor("T", "reduced"), ObservedTensor("int64", "reduced"))

    def test_indices_and_shapes_like_the_first(self) -> None:
        seen = observed("take")
        assert seen is not None
        assert seen.inputs == {"self": "T", "index": "int64"}
        assert seen.results == (ObservedTensor("T", "like index"),)

    def test_a_loss_has_the_shape_of_its_parts_where_it_is_not_reduced(self) -> None:
        seen = observed("multi_margin_loss")
        assert seen is not None
        assert seen.results == (ObservedTensor("T", "like target", is_loss=True),)

    @pytest.mark.parametrize(
        ("overload", "refuses"), [("softshrink.out", True), ("take.out", True), ("sinc.out", False), ("mode", False)]
    )
    def test_outputs_that_the_cpu_casts_to(self, overload: str, refuses: bool) -> None:
        seen = observed(overload)
        assert seen is not None
        assert seen.same_dtype is refuses

    def test_pairs_of_rows(self) -> None:
        seen = observed("_pdist_forward")
        assert seen is not None
        assert seen.results == (ObservedTensor("T", "", (Size("pairs", "self", 0),)),)

    def test_factors_have_the_shapes_that_the_flags_ask_for(self) -> None:
        seen = observed("_linalg_svd.U")
        assert seen is not None
        lesser = Size("lesser", "A")
        left = (Size("leading", "A", 1), Size("size", "A", -2, "full_matrices", lesser))
        right = (Size("leading", "A", 2), Size("size", "A", -1, "full_matrices", lesser), Size("size", "A", -1))
        assert seen.results == (
            ObservedTensor("T", "", left, requested_by="compute_uv"),
            ObservedTensor("T", "", (Size("leading", "A", 2), lesser)),
            ObservedTensor("T", "", right, requested_by="compute_uv"),
        )

    def test_vectors_that_need_not_be_computed_have_the_shape_of_the_matrix(self) -> None:
        seen = observed("_linalg_eigh.eigenvalues")
        assert seen is not None
        assert seen.results[1] == ObservedTensor("T", "", (Size("leading", "A"),), requested_by="compute_v")

    @pytest.mark.parametrize(
        ("name", "integers"),
        [("take.out", INTEGERS), ("_pdist_forward", ()), ("std.correction_out", ()), ("frexp.Tensor_out", ())],
    )
    def test_dtypes_without_fractions_count_where_they_are_kept(self, name: str, integers: tuple[str, ...]) -> None:
        seen = observed(name)
        assert seen is not None
        assert seen.integers == integers

    def test_an_overload_of_another_torch_is_not_seen(self) -> None:
        assert observed("no_such_operator.out") is None


class TestReferences:
    def test_a_decomposition_is_traced_step_by_step(self) -> None:
        operator = source_of(None).operator("heaviside")
        head, *steps = reference_of(operator.kernels[0], operator)
        assert head == "torch's own decomposition, traced for one call:"
        assert any("where" in step for step in steps)
        assert steps[-1].startswith("  return ")

    def test_a_step_that_is_the_operator_itself_says_nothing(self) -> None:
        operator = source_of(None).operator("frexp")
        assert reference_of(operator.kernels[0], operator)[0].startswith(
            "torch's decompositions do not say how it computes"
        )

    def test_an_overload_without_a_decomposition_names_its_kernels(self) -> None:
        operator = source_of(None).operator("mode")
        assert {reference_of(overload, operator) for overload in operator.kernels} == {
            (
                "torch's decompositions do not say how it computes; "
                "its kernels in aten/src/ATen/native are CPU: mode, CUDA: mode.",
            )
        }


class TestOpInfoEntry:
    @pytest.mark.parametrize("name", ["_pdist_forward", "_adaptive_avg_pool3d", "_upsample_lanczos2d_aa"])
    def test_an_operator_without_an_opinfo_gets_one_whose_samples_run(self, name: str) -> None:
        made = with_opinfo("op_db: list[OpInfo] = [\n]\n", source_of(None).operator(name))
        names = dict(vars(common_methods_invocations))
        exec(made, names)
        (opinfo,) = names["op_db"]
        samples = list(opinfo.sample_inputs("cpu", torch.float32))
        assert samples
        for sample in samples:
            opinfo(sample.input, *sample.args, **sample.kwargs)
        assert max(map(len, made.splitlines())) <= 88

    def test_an_operator_without_samples_leaves_the_file_unchanged(self) -> None:
        empty = "op_db: list[OpInfo] = [\n]\n"
        assert with_opinfo(empty, source_of(None).operator("_fused_adagrad_")) == empty
