"""Which other values each kind of argument gets, and how a call is made with them."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch

from mpsmith.audit.cases.calls.binding import Binding
from mpsmith.audit.cases.calls.invocation import overload_of, runs_a_kernel, written_arguments
from mpsmith.audit.cases.sources.argument_values import UNKNOWN_WORD, other_values, ramp
from mpsmith.audit.cases.sources.calls_in_a_row import ConsecutiveCalls, in_dtype, scaled, unchanged, with_others
from mpsmith.audit.cases.sources.indices import out_of_range

X = torch.arange(6.0).reshape(2, 3)


def values(overload: str, argument: str, **given: Any) -> list[Any]:
    schema = {a.name: a for a in overload_of(f"aten::{overload}")._schema.arguments}
    return list(other_values(schema[argument], given))


@pytest.mark.parametrize(
    ("overload", "argument", "given", "expected"),
    [
        ("topk", "largest", {"self": X, "largest": True}, [False]),
        ("topk", "dim", {"self": X, "dim": -1}, [0, 1, -2, 2]),
        ("topk", "k", {"self": X, "k": 2}, [0, 1, 3, -1, 7, 4]),
        ("mse_loss", "reduction", {"self": X, "reduction": 1}, [0, 2]),
        ("gelu", "approximate", {"self": X, "approximate": "none"}, ["tanh", UNKNOWN_WORD]),
        ("div.Tensor_mode", "rounding_mode", {"self": X, "rounding_mode": "floor"}, [None, "trunc", UNKNOWN_WORD]),
        ("cumsum", "dtype", {"self": X, "dtype": None}, [torch.float32, torch.float16, torch.int64]),
        ("sum.dim_IntList", "dim", {"self": X, "dim": [1]}, [None, [0], [-1], [0, -1], [0, 1], [], [0, 0], [2]]),
        ("round.decimals", "decimals", {"self": X, "decimals": 1}, [0, 2, 3, -1, 7]),
        ("var.correction", "correction", {"self": X, "correction": None}, [0, 1, 2, 0.5, 6]),
        ("norm.Scalar", "p", {"self": X, "p": 2}, [0, 0.5, 1, 3, -1, math.inf, -math.inf]),
        (
            "constant_pad_nd",
            "pad",
            {"self": X, "pad": [1, 2]},
            [[2, 3], [2, 2], [1, 3], [1, 1], [0, 0], [-1, -1], [2, 1]],
        ),
        ("native_layer_norm_backward", "output_mask", {"output_mask": [True, True]}, [[False, True], [True, False]]),
        ("embedding_dense_backward", "num_weights", {"num_weights": 4}, []),
        ("upsample_nearest1d", "scales", {"self": X, "scales": None}, [0.5, 2, 3.5]),
    ],
)
def test_the_other_values_of_an_argument(overload: str, argument: str, given: dict[str, Any], expected: Any) -> None:
    assert values(overload, argument, **given) == expected


def test_the_numbers_of_a_factor_and_of_integers() -> None:
    numbers = values("addmm", "beta", self=X, beta=1)
    assert numbers[:-1] == [0, -1, 0.5, 2, -2.5, 300, 1e6, math.inf, -math.inf]
    assert math.isnan(numbers[-1])
    assert values("add.Tensor", "alpha", self=X.long(), alpha=1) == [0, -1, 2, 100, 0.5]


def test_an_optional_tensor_is_left_out_and_given() -> None:
    assert values("convolution", "bias", self=X, bias=torch.ones(3)) == [None]
    (bias,) = values("convolution", "bias", self=torch.ones(2, 3, 4, 4), bias=None)
    assert bias.tolist() == [0.5, 1.0, 1.5]
    assert ramp((3,), torch.int64).tolist() == [1, 2, 1]


def test_a_call_is_bound_to_its_schema_and_made_with_other_values() -> None:
    binding = Binding("aten::topk", (X, 2), {"largest": False})
    assert {name: value for name, value in binding.given.items() if name != "self"} == {
        "k": 2,
        "dim": -1,
        "largest": False,
        "sorted": True,
    }
    assert binding.with_others({"k": 1}) == ((X, 1), {"largest": False})
    assert binding.with_others({"dim": 0}) == ((X, 2, 0), {"largest": False})
    assert binding.with_others({"sorted": False}) == ((X, 2, -1, False, False), {})
    assert Binding("aten::add.Tensor", (X, X), {}).with_others({"alpha": 2}) == ((X, X), {"alpha": 2})


def test_a_series_of_calls_gives_every_result() -> None:
    steps = [unchanged, with_others("aten::sum.dim_IntList", {"keepdim": True}), in_dtype(torch.float32, torch.float16)]
    plain, kept, half = ConsecutiveCalls(torch.ops.aten.sum.dim_IntList, steps, copies=False)(X, [0])
    assert plain.tolist() == [3, 5, 7]
    assert kept.tolist() == [[3, 5, 7]]
    assert half.dtype is torch.float16
    (scaled_sum,) = ConsecutiveCalls(torch.ops.aten.sum.dim_IntList, [scaled(unchanged, 2.0)], copies=False)(X, [0])
    assert scaled_sum.tolist() == [6, 10, 14]


def test_each_call_of_a_series_writes_into_its_own_tensors() -> None:
    series = ConsecutiveCalls(torch.ops.aten.add_.Scalar, [unchanged, unchanged], copies=True)
    first, second = series(torch.zeros(2), 1)
    assert first.tolist() == second.tolist() == [1, 1]


def test_indices_are_put_out_of_range_where_the_cpu_looks() -> None:
    index = torch.tensor([0, 1])
    changed = dict(out_of_range("index_select.out", {"index": index}))
    assert {title: others["index"].tolist() for title, others in changed.items()} == {
        "index[-1]=100000": [0, 100_000],
        "index[-1]=-100000": [0, -100_000],
        "index[-1]=-1": [0, -1],
    }
    assert index.tolist() == [0, 1]
    assert list(out_of_range("embedding_dense_backward", {"indices": index})) == []
    (far, *_) = out_of_range("index_put_", {"indices": [None, index]})
    assert far[1]["indices"][0] is None
    assert far[1]["indices"][1].tolist() == [0, 100_000]


def test_runs_a_kernel_and_written_arguments() -> None:
    assert runs_a_kernel("aten::exp")
    assert not runs_a_kernel("aten::std.dim")
    assert written_arguments("aten::exp") == []
    assert written_arguments("aten::exp_") == ["self"]
    assert written_arguments("aten::topk.values") == ["values", "indices"]


def test_the_scalars_of_fused_optimizers_are_given() -> None:
    given = {"self": [X], "grad_scale": None, "found_inf": None}
    (scale,) = values("_fused_adam_", "grad_scale", **given)
    assert (scale.shape, scale.dtype, scale.item()) == (torch.Size(), torch.float32, 2.0)
    assert [value.item() for value in values("_fused_adam_", "found_inf", **given)] == [0.0, 1.0]
