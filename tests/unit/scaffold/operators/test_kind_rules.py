"""Each rule that tells the kind of a kernel, on operators made by hand: by name, by schema, by number of tensors."""

from __future__ import annotations

import pytest
from torchgen.model import FunctionSchema

from mpsmith.audit.releases.surface.native_functions import NativeFunction
from mpsmith.audit.releases.surface.overloads import Dispatch, Overload
from mpsmith.audit.releases.surface.reachability import Reachable
from mpsmith.scaffold.errors import ScaffoldError
from mpsmith.scaffold.operators.kinds import KernelKind, chosen_kind, kind_of
from mpsmith.scaffold.operators.model import OperatorModel, OverloadModel


def operator(
    name: str, arguments: str = "Tensor self", module: str | None = None, tags: tuple[str, ...] = ()
) -> OperatorModel:
    schema = f"{name}({arguments}) -> Tensor"
    surface = Overload(
        f"aten::{name}", f"aten::{name}", schema, tags, False, Dispatch.MISSING, Dispatch.MISSING, Reachable()
    )
    function = NativeFunction(name, schema, {"CPU": name}, tags=tags, python_module=module)
    return OperatorModel(name, name, "2.13.0", (OverloadModel(function, FunctionSchema.parse(schema), surface),))


NAMES = {
    KernelKind.FOREACH: "_foreach_add _fused_adamw_x _fused_sgd _fused_lion _amp_foreach_x",
    KernelKind.RANDOM: "x_philox rrelu_x dropout binomial poisson multinomial bernoulli normal uniform",
    KernelKind.POOLING: "avg_pool9d upsample_x grid_sampler_9d interpolate_x im2col col2im x_pad3d pad",
    KernelKind.LINALG: "linalg_x geqrf ormqr orgqr lu_x cholesky_x svd_x qr_x triangular_x matrix_exp mm bmm x_mm mm_x "
    "convx rnn_x linearx",
    KernelKind.SCAN: "cumx _cumx logcumx _logcumx _cummax_x _cummin_x",
    KernelKind.SORT: "sortx topk_x thvalue_x kthvalue_x mode_x median_x unique_x bucketize_x searchsorted_x",
    KernelKind.REDUCTION: "x_loss pdist_x segment_reduce_x hash_tensor std var_x min max_x norm softmax_x",
    KernelKind.GATHER: "gather_x scatter_x take_x put_x index_x embedding_x shuffle_x narrow_x select_x jagged_x "
    "nested_x",
}


@pytest.mark.parametrize(("kind", "name"), [(kind, name) for kind, names in NAMES.items() for name in names.split()])
def test_the_kind_follows_from_the_name(kind: KernelKind, name: str) -> None:
    choice = kind_of(operator(name))
    assert (choice.kind, choice.because) == (kind, "its name")


@pytest.mark.parametrize("name", ["x_foreach", "x_binomial", "x_geqrf", "xcum", "x_topk", "maximum", "x_take", "amm"])
def test_other_parts_of_a_name_do_not_decide_the_kind(name: str) -> None:
    assert kind_of(operator(name)).kind is KernelKind.UNARY


@pytest.mark.parametrize(
    ("made", "kind", "because"),
    [
        (operator("x", "Tensor self, Generator? generator=None"), KernelKind.RANDOM, "a Generator in its schema"),
        (operator("x", module="linalg"), KernelKind.LINALG, "its module, linalg"),
        (operator("x", module="nn"), KernelKind.UNARY, "1 tensor in its schema"),
        (operator("x", "Tensor self, Tensor index"), KernelKind.GATHER, "an index in its schema"),
        (operator("x", "Tensor self, Tensor indices"), KernelKind.GATHER, "an index in its schema"),
        (operator("x", tags=("reduction",)), KernelKind.REDUCTION, "the tag reduction"),
        (operator("x", "Tensor self, bool keepdim"), KernelKind.REDUCTION, "keepdim or reduction in its schema"),
        (operator("x", "Tensor self, int reduction"), KernelKind.REDUCTION, "keepdim or reduction in its schema"),
        (operator("x", "Tensor[] self"), KernelKind.FOREACH, "lists of tensors in its schema"),
        (operator("x", "int n"), KernelKind.UNARY, "0 tensors in its schema"),
        (operator("x"), KernelKind.UNARY, "1 tensor in its schema"),
        (operator("x", "Tensor a, Tensor b"), KernelKind.BINARY, "2 tensors in its schema"),
        (operator("x", "Tensor a, Tensor b, Tensor? c"), KernelKind.TERNARY, "3 tensors in its schema"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_otherwise_the_kind_follows_from_the_schema(made: OperatorModel, kind: KernelKind, because: str) -> None:
    choice = kind_of(made)
    assert (choice.kind, choice.because) == (kind, because)


@pytest.mark.parametrize(
    ("made", "kind"),
    [
        (operator("_foreach_norm"), KernelKind.FOREACH),
        (operator("poisson_nll_loss"), KernelKind.RANDOM),
        (operator("poolx", "Tensor self, Generator? g"), KernelKind.RANDOM),
        (operator("linalg_cumx"), KernelKind.LINALG),
        (operator("x", "Tensor self, Tensor index, bool keepdim"), KernelKind.GATHER),
        (operator("x", "Tensor[] self, bool keepdim"), KernelKind.REDUCTION),
    ],
    ids=str,
)
def test_the_first_rule_that_matches_decides(made: OperatorModel, kind: KernelKind) -> None:
    assert kind_of(made).kind is kind


def test_an_opinfo_comes_before_the_number_of_tensors_and_after_the_rules() -> None:
    assert kind_of(operator("x"), "ReductionOpInfo").kind is KernelKind.REDUCTION
    choice = kind_of(operator("x"), "ForeachFuncInfo")
    assert (choice.kind, choice.because) == (KernelKind.FOREACH, "its OpInfo, a ForeachFuncInfo")
    assert kind_of(operator("topk"), "ReductionOpInfo").kind is KernelKind.SORT
    assert kind_of(operator("x"), "UnaryUfuncInfo").kind is KernelKind.UNARY


def test_only_elementwise_kinds_are_elementwise_and_each_has_words() -> None:
    assert [kind for kind in KernelKind if kind.elementwise] == [
        KernelKind.UNARY,
        KernelKind.BINARY,
        KernelKind.TERNARY,
    ]
    assert len({kind.words for kind in KernelKind}) == len(KernelKind)
    assert KernelKind.SCAN.words == "scan"
    assert KernelKind.GATHER.words == "gather / scatter"


def test_a_kind_may_be_asked_for_by_its_name() -> None:
    assert chosen_kind(None) is None
    assert all(chosen_kind(kind.value) is kind for kind in KernelKind)
    with pytest.raises(
        ScaffoldError, match=r"'unari' is not a kind of kernel; there are unary, .*\(did you mean unary"
    ):
        chosen_kind("unari")
