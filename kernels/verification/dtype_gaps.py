"""Classifies the pairs of operator and dtype that upstream's tests of a release expect to fail on mps.

The list says that a test fails, not why. A pair is a gap that a kernel can close, or something else, which a rule here
names. A pair without a rule is open.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum

from ...audit.releases.coverage import ReleaseCoverage
from ..runtime import catalog
from .source import calls_of


class GapAnswer(str, Enum):
    """The class of a pair."""

    kernel = "kernel"
    override = "override"
    cpu_refuses = "the CPU refuses it, too"
    hardware = "hardware"
    other = "no gap of a dtype"
    open = "open"


@dataclass(frozen=True)
class DtypeGap:
    """One dtype of one expected failure.

    Attributes:
        opinfo: the OpInfo with its variant, `nn.functional.interpolate.bicubic`.
        stage: where upstream expects the failure: unimplemented, forward or backward.
        dtype: the name of the dtype.
        answer: the class of the pair.
        by: the family that implements it, or the reason.
    """

    opinfo: str
    stage: str
    dtype: str
    answer: GapAnswer
    by: str


_FLOAT64 = "float64, which no Apple GPU has"
_COMPLEX128 = "complex128, which no Apple GPU has"
_HARDWARE = {
    "cdouble": _COMPLEX128,
    "double": _FLOAT64,
    "float_power": _FLOAT64,
    "to": _FLOAT64,
    "log_softmax.with_dtype": f"the sample asks for {_FLOAT64}",
    "bincount": f"with weights the CPU's result is {_FLOAT64}",
}
_NO_TENSOR = "it returns no tensor that could have a gradient"
_RANDOM = "it draws random numbers, which are others on each device"
_SPARSE = "a sparse layout, which mpsmith does not register kernels for"
_TIES = "which of equal numbers comes first is not defined; the test compares positions"
_OTHER = {
    "allclose": _NO_TENSOR,
    "equal": _NO_TENSOR,
    "item": _NO_TENSOR,
    "argsort": _TIES,
    "msort": "which of equal numbers comes first is not defined, and decides which of them gets the gradient",
    "sort": _TIES,
    "as_strided.partial_views": "the test copies a view to the CPU without the memory around it, which is then read",
    "logcumsumexp": "on the branch cut of the complex logarithm the imaginary parts are 2 pi apart",
    "nn.functional.conv3d": "torch skips its tests of conv3d on mps in every dtype: the mark says nothing",
    "nn.functional.alpha_dropout": _RANDOM,
    "nn.functional.dropout": _RANDOM,
    "nn.functional.dropout2d": _RANDOM,
    "nn.functional.dropout3d": _RANDOM,
    "nn.functional.feature_alpha_dropout.with_train": _RANDOM,
    "nn.functional.multi_head_attention_forward": _RANDOM,
    "nn.functional.scaled_dot_product_attention": _RANDOM,
    "pca_lowrank": _RANDOM,
    "svd_lowrank": _RANDOM,
    "sparse.mm.reduce": _SPARSE,
    "sparse.sampled_addmm": _SPARSE,
    "to_sparse": _SPARSE,
}
# What is known of those that stay open.
_OPEN = {
    "linalg.householder_product": "all that its backward calls has kernels, and nothing is refused here",
    "nn.functional.grid_sample": "upstream's list names it anew, without a reason",
}
# The operator that a call of these runs, where it is another.
_IMPLEMENTATIONS = {
    "adaptive_avg_pool1d": "_adaptive_avg_pool2d",
    "adaptive_avg_pool2d": "_adaptive_avg_pool2d",
    "adaptive_avg_pool3d": "_adaptive_avg_pool3d",
    **{f"conv{n}d": "_mps_convolution" for n in (1, 2, 3)},
    **{f"conv_transpose{n}d": "_mps_convolution_transpose" for n in (1, 2, 3)},
    "linalg_inv": "linalg_inv_ex",
    "linalg_ldl_factor": "linalg_ldl_factor_ex",
    "linalg_matrix_power": "linalg_inv_ex",
    "linalg_tensorinv": "linalg_inv_ex",
    "multilabel_margin_loss": "multilabel_margin_loss_forward",
    "pdist": "_pdist_forward",
    "rrelu": "rrelu_with_noise",
}
_IMPLEMENTATIONS_OF_OPINFOS = {
    "_segment_reduce.lengths": "segment_reduce",
    "_segment_reduce.offsets": "segment_reduce",
    "nn.functional.interpolate.area": "_adaptive_avg_pool2d",
    "nn.functional.interpolate.bicubic": "upsample_bicubic2d",
}
# Operators that the torch which kernels are verified with may not have: who answers them, in which dtypes.
_LATER = {("linalg_matrix_sqrth", dtype): "eigh" for dtype in ("float32", "complex64")}


def dtype_gaps(coverage: ReleaseCoverage, on_the_cpu: Mapping[str, frozenset[str]]) -> list[DtypeGap]:
    """Every pair of a release's list, in its order.

    `on_the_cpu`: by OpInfo with its variant, the names of the dtypes that the CPU supports; OpInfos that the running
        torch lacks are not in it.
    """
    return list(_gaps(coverage, on_the_cpu, _answering()))


def counted(gaps: list[DtypeGap]) -> dict[GapAnswer, int]:
    """The number of pairs of each class."""
    counts = Counter(gap.answer for gap in gaps)
    return {answer: counts[answer] for answer in GapAnswer}


def _gaps(
    coverage: ReleaseCoverage, on_the_cpu: Mapping[str, frozenset[str]], answering: Mapping[tuple[str, str], _Family]
) -> Iterator[DtypeGap]:
    for key, dtypes in coverage.failures.items():
        opinfo = f"{key.opinfo}.{key.variant}" if key.variant else key.opinfo
        operator = _IMPLEMENTATIONS_OF_OPINFOS.get(opinfo) or _IMPLEMENTATIONS.get(key.operator, key.operator)
        for dtype in dtypes.split(","):
            if dtype == "all":  # a mark for a whole OpInfo, whose dtypes stand in the list, too
                continue
            taken = on_the_cpu.get(opinfo)
            yield DtypeGap(opinfo, key.stage, dtype, *_answer(opinfo, dtype, taken, answering.get((operator, dtype))))


def _answer(opinfo: str, dtype: str, taken: frozenset[str] | None, family: _Family | None) -> tuple[GapAnswer, str]:
    if opinfo in _HARDWARE:
        return GapAnswer.hardware, _HARDWARE[opinfo]
    if family is not None:
        return (GapAnswer.override if family.overrides else GapAnswer.kernel), family.name
    if opinfo in _OTHER:
        return GapAnswer.other, _OTHER[opinfo]
    if taken is not None and dtype not in taken:
        return GapAnswer.cpu_refuses, ""
    return GapAnswer.open, _OPEN.get(opinfo, "")


@dataclass(frozen=True)
class _Family:
    name: str
    overrides: bool


def _answering() -> dict[tuple[str, str], _Family]:
    """By operator and dtype, the family that implements it, for the dtypes in which its calls are verified."""
    families = {key: _Family(name, overrides=False) for key, name in _LATER.items()}
    for name in catalog.families():
        overridden = catalog.overridden(name)
        for call in calls_of(name):
            for operator in call.operators:
                for dtype in call.dtypes:
                    key = (operator.removeprefix("aten::"), str(dtype).removeprefix("torch."))
                    families[key] = _Family(name, operator in overridden)
    return families


def dtypes_on_the_cpu() -> dict[str, frozenset[str]]:
    """By OpInfo with its variant, the dtypes that the running torch supports on the CPU, as its tests declare them."""
    from torch.testing._internal.common_methods_invocations import op_db

    return {
        f"{op.name}.{op.variant_test_name}" if op.variant_test_name else op.name: frozenset(
            str(dtype).removeprefix("torch.") for dtype in op.dtypes
        )
        for op in op_db
    }
