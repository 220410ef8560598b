"""Faults in operators that no list names: the source that makes the case about a fault shows it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from mpsmith.audit.cases.sources import case_sources
from mpsmith.audit.cases.sources.arguments import ARGUMENT_FACTOR
from mpsmith.audit.cases.sources.derived import VariedSource
from mpsmith.audit.cases.sources.opinfo import OpInfoSource
from mpsmith.audit.cases.sources.repetition import REPETITION_FACTOR
from mpsmith.audit.cases.sources.schema import SchemaSource
from mpsmith.audit.cases.sources.schema_random import SchemaRandomSource
from mpsmith.audit.model.case import CaseSource
from support.faulty_kernels import Faulty
from support.judged_groups import cases_that_find, wrong_cases

SCHEMAS = SchemaSource()
SOURCES: dict[str, CaseSource] = case_sources(()) | {
    "of arguments": VariedSource(ARGUMENT_FACTOR, SCHEMAS),
    "of draws": SchemaRandomSource(SCHEMAS),
    "of repeated calls": VariedSource(REPETITION_FACTOR, SCHEMAS),
    "of repeated samples": VariedSource(REPETITION_FACTOR, OpInfoSource()),
}
pytestmark = pytest.mark.usefixtures("fallback_enabled")  # as the audit's first pass runs

WEIGHT_ALONE = "second_result when lacks(output_mask, 0) and lacks(output_mask, 2)"

# The source, and the operator of the group with its dtype if not float32; the overload and its fault; the title of a
# case that shows it.
FAULTS = [
    ("of arguments", "topk", "topk", "takes(largest, True)", "largest=False"),
    ("of arguments", "cumprod", "cumprod", "takes(dim, 0) when negative(dim)", "dim=-1"),
    ("of arguments", "baddbmm", "baddbmm", "all_nan when is(beta, 0) and nan(self)", "beta=0, NaN in self"),
    ("of arguments", "index_select", "index_select", "clamps(index, self)", "index[-1]=100000"),
    ("of arguments", "mse_loss", "mse_loss", "takes(reduction, 1) when is(reduction, 2)", "reduction=2"),
    (
        *("of arguments", "addcmul", "addcmul"),
        *("previous_number(value) when near_previous(value)", "numbers near each other: value"),
    ),
    ("of draws", "uniform_", "uniform_", "takes(generator, None)", "generator="),
    ("of draws", "exponential_", "exponential_", "takes(lambd, 1.0)", "distribution: 4.0"),
    ("of draws", "native_dropout", "native_dropout", "takes(p, 0.999) when is(p, 1.0)", "certain: 1.0, True"),
    ("of draws", "normal.Tensor_float", "normal.Tensor_float", "takes(std, 1.0)", "certain: 0"),
    ("of draws", "cauchy_", "cauchy_", "zeros when one_element(self)", "one at a time: -3.0, 0.5"),
    ("of repeated calls", "erfinv", "erfinv", "values when every(100)", "200 times"),
    ("of repeated calls", "hardswish", "hardswish", "values when other_thread", "from two threads"),
    ("of repeated samples", "asinh", "asinh", "cached", "with other values"),
    ("schema forms", "asinh_", "asinh_", "raises when empty(self)", "empty"),
    ("special values", "sort:int64", "sort.stable", "through_float32(self)", "beyond 2^24"),
    ("sizes", "logcumsumexp", "_logcumsumexp", "values when longer(self, 1024)", "1,025 rows"),
    ("sizes", "cdist", "_cdist_forward", "values when dimensions(x1, 5)", "5 dimensions"),
    ("sizes", "nn.functional.batch_norm", "native_batch_norm", "values when above(input, 65536)", "1,025 rows"),
    ("schema special values", "threshold_backward", "threshold_backward", "nan_as_zero(self)", "nan"),
    (
        *("gradients", "nn.functional.softplus", "softplus_backward"),
        *("values when expanded(grad_output)", "gradients of the outputs as of a sum"),
    ),
    ("gradients", "nn.functional.layer_norm", "native_layer_norm_backward", WEIGHT_ALONE, "gradient of tensor 1 alone"),
    ("mixed dtypes", "sub", "sub.Tensor", "values when dtype(self, int64)", "tensor 0 int64"),
    ("mixed dtypes", "index_select", "index_select", "values when dtype(index, int32)", "tensor 1 int32"),
    ("tensor layouts", "outer", "mul.Tensor", "values when contiguous(self) and offset(other)", "tensor 1 offset"),
    ("tensor layouts", "lt", "lt.Tensor", "values when shared(self, other)", "tensors 0 and 1: overlapping rows"),
    ("tensor layouts", "tril", "tril", "values when inner_strided(self)", "tensor 0 stepped rows"),
    ("sizes", "softmax", "_softmax_backward_data", "zeros when dimensions(output, 6)", "6 dimensions"),
    ("schema forms", "hardswish_backward", "hardswish_backward", "zeros when dimensions(self, 5)", "5 dimensions"),
    ("schema forms", "asinh_", "asinh_", "values when dimensions(self, 6)", "6 dimensions"),
    (
        *("schema forms", "special_modified_bessel_i1.out", "special_modified_bessel_i1.out"),
        *("infinity_lost when infinite(self)", "infinities, largest finite, out= resized"),
    ),
    ("schema forms", "triu.out", "triu.out", "sign_of_zero_lost when negative_zero(self)", "negative zeros"),
    (
        *("special values", "special.modified_bessel_i1", "special_modified_bessel_i1"),
        *("infinity_lost when infinite(self)", "infinities, largest finite"),
    ),
    ("targets", "erfinv", "erfinv_", "unwritten(self) when non_contiguous(self)", "in place transposed"),
    (
        *("targets", "masked_fill", "masked_fill_.Scalar"),
        *("unwritten(self) when non_contiguous(self)", "in place transposed"),
    ),
    (
        *("schema targets", "index_fill_.int_Scalar", "index_fill_.int_Scalar"),
        *("unwritten(self) when non_contiguous(self)", "written transposed"),
    ),
    ("targets", "tanh", "tanh_", "writes_outside when inner_strided(self)", "in place slice of larger"),
    ("targets", "cumsum", "cumsum.out", "values when inner_strided(out)", "out= every other row"),
]


@pytest.mark.parametrize(
    ("source", "operator", "overload", "fault", "title"), FAULTS, ids=[f"{row[0]}: {row[2]}" for row in FAULTS]
)
def test_the_case_about_a_fault_shows_it(source: str, operator: str, overload: str, fault: str, title: str) -> None:
    operator, _, dtype = operator.partition(":")
    assert title in cases_that_find(SOURCES[source], operator, overload, fault, dtype=dtype or "float32")
    assert wrong_cases(SOURCES[source], operator, dtype or "float32") == [], "the device is whole again"


# As above, with any case that has the word in its title, and with the variant of the group.
IN_A_WORD = [
    ("schema forms", "bitwise_or.Tensor_out", "int64", "", "bitwise_or.Tensor_out", "through_float64(other)", "2^53"),
    ("schema forms", "min.dim_min", "float32", "", "min.dim_min", "zeros when rows_above(self, 1024)", "2,050"),
    (
        *("schema forms", "gelu_backward.grad_input", "float32", "", "gelu_backward.grad_input"),
        *("values when expanded(grad_output)", "expanded"),
    ),
    (
        "module sizes",
        "nn.BatchNorm2d",
        "float32",
        "train",
        "native_batch_norm",
        "values when above(input, 65536)",
        "1,0",
    ),
    ("module gradients", "nn.Linear", "float32", "train", "linear_backward", WEIGHT_ALONE, " alone"),
    ("mixed dtypes", "maximum", "float32", "", "maximum", "values when mixed(self, other)", ""),
    ("mixed dtypes", "mul", "float32", "", "mul_.Tensor", "values when mixed(self, other)", ""),
    (
        *("schema mixed dtypes", "hypot_", "float32", "", "hypot_"),
        *("values when mixed(self, other) and non_contiguous(self)", ""),
    ),
    (
        *("schema tensor layouts", "softplus_backward", "float32", "", "softplus_backward"),
        *("values when non_contiguous(self)", ""),
    ),
    ("pairs", "erfc", "float16", "", "erfc", "values when transposed(self) and dtype(self, float16)", "transposed"),
    (
        *("pairs", "bitwise_xor", "int64", "", "bitwise_xor.Tensor"),
        *("second_half when above(self, 65536) and dtype(self, int64)", "over 65,536"),
    ),
    ("tensor layouts", "lt", "int64", "", "lt.Tensor", "values when shared(self, other)", ""),
]


@pytest.mark.parametrize(
    ("source", "operator", "dtype", "variant", "overload", "fault", "word"),
    IN_A_WORD,
    ids=[f"{row[0]}: {row[4]}" for row in IN_A_WORD],
)
def test_some_case_about_a_fault_shows_it(
    source: str, operator: str, dtype: str, variant: str, overload: str, fault: str, word: str
) -> None:
    titles = cases_that_find(SOURCES[source], operator, overload, fault, dtype=dtype, variant=variant)
    assert any(word in title for title in titles)


# ---- faults that only code can describe


def zero_weights_are_drawn(
    kernel: Any, x: Any, samples: int, replacement: bool = False, *, generator: Any = None
) -> Any:
    return kernel(x + (x.sum() / 5000).to(x.dtype), samples, replacement, generator=generator)


def the_end_is_drawn(kernel: Any, x: Any, low: int, high: Any, *, generator: Any = None) -> Any:
    return kernel(x, low, None if high is None else high + 1, generator=generator)


def another_mask(kernel: Any, gradient: Any, mask: Any, scale: float) -> Any:
    return kernel(gradient, torch.roll(mask, 1), scale)


def zero_cotangent(kernel: Any, grad: Any, output: Any, *args: Any) -> Any:
    gradient = kernel(grad, output, *args)
    return gradient + 1 if not bool(grad.any()) else gradient


def third_dtype_is_lost(kernel: Any, tensors: Any, dim: int = 0) -> Any:
    return kernel(tensors, dim).to(torch.promote_types(tensors[0].dtype, tensors[min(1, len(tensors) - 1)].dtype))


def number_is_truncated(kernel: Any, self: Any, other: Any) -> Any:
    out = kernel(self, other)
    return out.trunc() if not self.is_floating_point() and out.is_floating_point() else out


def without_a_lone_nan(kernel: Any, self: Any, dim: int) -> Any:
    return kernel(self.nan_to_num(0.0) if int(self.isnan().sum()) == 1 else self, dim)


def refuses_empty(kernel: Any, self: Any, *args: Any, **kwargs: Any) -> Any:
    if not self.numel():
        raise RuntimeError("kernel launch with a grid of no threads")
    return kernel(self, *args, **kwargs)


def second_alone_at_an_offset(kernel: Any, self: Any, other: Any) -> Any:
    out = kernel(self, other)
    return out + 1 if other.storage_offset() and not self.storage_offset() else out


def remembering(key: Callable[[Any], Any]) -> Faulty:
    """A kernel that gives the result of the last call with the same key of its first argument."""
    results: dict[Any, Any] = {}

    def faulty(kernel: Any, x: Any, *rest: Any, **named: Any) -> Any:
        if key(x) not in results:
            results[key(x)] = kernel(x, *rest, **named)
        return results[key(x)]

    return faulty


def flag_of_first_shape() -> Faulty:
    """A kernel that keeps the flag of the first call with the same shape."""
    flags: dict[Any, bool] = {}
    return lambda kernel, x, weights, align, *rest: kernel(x, weights, flags.setdefault(x.shape, align), *rest)


CODED: list[tuple[str, str, str, str, Faulty, str]] = [
    ("of draws", "multinomial", "float32", "multinomial", zero_weights_are_drawn, "certain: (0, 0.5, 0, 1.5), 4, True"),
    ("of draws", "random_.from", "float32", "random_.from", the_end_is_drawn, "certain: 2, 6"),
    ("of draws", "native_dropout", "float32", "native_dropout_backward", another_mask, "the gradient's mask"),
    (
        *("of repeated calls", "softplus", "float32", "softplus"),
        *(remembering(lambda x: (x.data_ptr(), x.shape)), "with other values"),
    ),
    (
        "of repeated calls",
        "logcumsumexp",
        "float32",
        "logcumsumexp",
        remembering(lambda x: x.shape),
        "with other values",
    ),
    ("special values", "cummax", "float32", "cummax", without_a_lone_nan, "nan middle"),
    ("sizes", "kthvalue", "float32", "kthvalue", refuses_empty, "empty in dimension 0"),
    ("tensor layouts", "mv", "float32", "mv", second_alone_at_an_offset, "tensor 1 offset"),
    (
        *("samples without gradients", "nn.functional.embedding", "float32", "embedding_renorm_"),
        *(lambda kernel, weights, *rest: weights, ""),
    ),
    ("of arguments", "upsample_bilinear2d", "float32", "upsample_bilinear2d", flag_of_first_shape(), "in a row: "),
    ("gradients", "softmax", "float32", "_softmax_backward_data", zero_cotangent, "gradients of the outputs zero"),
    ("mixed dtypes", "cat", "float32", "cat", third_dtype_is_lost, ""),
    ("mixed dtypes", "remainder", "int64", "remainder.Tensor", number_is_truncated, ""),
]


@pytest.mark.parametrize(
    ("source", "operator", "dtype", "overload", "fault", "beginning"), CODED, ids=[row[3] for row in CODED]
)
def test_the_case_about_a_coded_fault_shows_it(
    source: str, operator: str, dtype: str, overload: str, fault: Faulty, beginning: str
) -> None:
    titles = cases_that_find(SOURCES[source], operator, overload, fault, dtype=dtype)
    assert any(title.startswith(beginning) for title in titles)


def test_clean_groups_have_no_wrong_case() -> None:
    assert wrong_cases(SOURCES["schema mixed dtypes"], "masked_scatter_") == []
    assert wrong_cases(SOURCES["opinfo"], "nn.functional.embedding") == []
