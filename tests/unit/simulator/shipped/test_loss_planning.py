"""Losses and the gated linear unit: which kernels in which order, with which buffers."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from mpsmith.simulator.shipped.conventions import gated_linear, losses
from mpsmith.simulator.shipped.plan import ERROR_BUFFER, BlitFill, Declined, KernelLaunch
from support.fake_kernels import FakeKernels, planned


def test_likelihood_without_reduction() -> None:
    x, target = torch.zeros(2, 5, 3, 4), torch.zeros(2, 3, 4, dtype=torch.int64)
    output, total = torch.zeros(2, 3, 4), torch.zeros(())
    launch, fill = planned(
        losses.PLANNERS,
        "nll_loss2d_forward",
        FakeKernels({"nllnd_loss_forward_float": ()}),
        output,
        total,
        self=x,
        target=target,
        weight=None,
        reduction=0,
        ignore_index=-7,
    )
    assert isinstance(launch, KernelLaunch)
    assert launch.arguments["output"] is output
    assert launch.arguments["error_buf"] is ERROR_BUFFER
    assert launch.arguments["params"] == {
        "n_classes": 5,
        "map_size": 12,
        "batch_stride": 60,
        "class_stride": 12,
        "ignore_index": -7,
        "tid_offset": 0,
        "has_weight": False,
    }
    assert launch.threads == (24, 1, 1)
    assert isinstance(fill, BlitFill)
    assert fill.target is total


def test_the_gradient_of_likelihood_scatters_into_zeros() -> None:
    x, target = torch.zeros(3, 5), torch.zeros(3, dtype=torch.int64)
    result, gradient, total, weight = torch.zeros(3, 5), torch.ones(()), torch.ones(()), torch.ones(5)
    fill, launch = planned(
        losses.PLANNERS,
        "nll_loss_backward",
        FakeKernels({"nllnd_loss_backward_float": ()}),
        result,
        grad_output=gradient,
        self=x,
        target=target,
        weight=weight,
        reduction=1,
        ignore_index=-100,
        total_weight=total,
    )
    assert isinstance(fill, BlitFill)
    assert isinstance(launch, KernelLaunch)
    bound = {name: launch.arguments[name] for name in ("grad_input", "grad_output", "weight", "total_weight")}
    assert bound == {"grad_input": result, "grad_output": gradient, "weight": weight, "total_weight": total}
    params: Any = launch.arguments["params"]
    assert (params["is_reduction"], params["is_mean"], params["forward"]["has_weight"]) == (True, True, True)


@pytest.mark.parametrize("overload", ["nll_loss_forward", "nll_loss_backward"])
def test_a_release_without_the_kernel_takes_the_graph(overload: str) -> None:
    target = torch.zeros(3, dtype=torch.int64)
    given: dict[str, Any] = {"self": torch.zeros(3, 5), "target": target, "weight": None, "reduction": 1}
    with pytest.raises(Declined, match="MPSGraph"):
        planned(losses.PLANNERS, overload, FakeKernels({}), torch.zeros(()), torch.zeros(()), **given)


CTC = FakeKernels(
    {
        "ctc_loss_float_long_int32_t": (),
        "ctc_loss_backward_log_beta_float_long_int32_t": (),
        "ctc_loss_backward_collect_float_long_int32_t": (),
        "fill_scalar_dense_float": (),
    }
)


def test_targets_one_after_another_have_offsets() -> None:
    log_probs, targets = torch.zeros(12, 3, 6), torch.ones(6, dtype=torch.int64)
    loss, log_alpha = torch.zeros(3), torch.zeros(3, 12, 7)
    (launch,) = planned(
        losses.PLANNERS,
        "_ctc_loss",
        CTC,
        loss,
        log_alpha,
        log_probs=log_probs,
        targets=targets,
        input_lengths=[12, 10, 8],
        target_lengths=[3, 2, 1],
        blank=4,
    )
    assert isinstance(launch, KernelLaunch)
    integers: dict[str, Any] = dict(launch.arguments)
    assert integers["target_batch_offsets"].tolist() == [0, 3, 5]
    assert integers["input_lengths"].tolist() == [12, 10, 8]
    assert integers["target_lengths"].tolist() == [3, 2, 1]
    assert integers["params"]["BLANK"] == 4
    assert integers["params"]["max_target_length"] == 3
    assert (integers["loss"], integers["log_alpha"]) == (loss, log_alpha)
    assert (launch.threads, launch.group) == ((21, 1, 1), (7, 1, 1))


def test_the_gradient_of_classification_is_collected_into_minus_infinity() -> None:
    log_probs, log_alpha, result = torch.zeros(12, 2, 6), torch.zeros(2, 12, 7), torch.zeros(12, 2, 6)
    fill, beta, collect = planned(
        losses.PLANNERS,
        "_ctc_loss_backward",
        CTC,
        result,
        grad=torch.ones(1).expand(2),
        log_probs=log_probs,
        targets=torch.ones(2, 3, dtype=torch.int64),
        input_lengths=[12, 10],
        target_lengths=[3, 2],
        neg_log_likelihood=torch.zeros(2),
        log_alpha=log_alpha,
        blank=0,
    )
    assert isinstance(fill, KernelLaunch)
    assert isinstance(beta, KernelLaunch)
    assert isinstance(collect, KernelLaunch)
    assert fill.arguments["fill_val"] == float("-inf")
    assert collect.arguments["log_alpha"] is log_alpha
    assert collect.arguments["log_beta"] is beta.arguments["log_beta"]
    params: Any = collect.arguments["params"]
    assert (params["grad_out_batch_stride"], params["num_labels"]) == (0, 6)
    assert collect.threads == (12, 2, 1)


def test_dense_gated_units_run_over_halves() -> None:
    x, result = torch.zeros(2, 6, 5), torch.zeros(2, 3, 5)
    kernels = FakeKernels({"glu_dense_float": (), "glu_backward_dense_float": (), "glu_backward_float": ()})
    (launch,) = planned(gated_linear.PLANNERS, "glu", kernels, result, self=x, dim=1)
    assert isinstance(launch, KernelLaunch)
    assert launch.arguments["inner_half"] == 15
    assert launch.threads == (15, 2, 1)


def test_gradients_of_other_layouts_know_where_the_second_half_is() -> None:
    x, gradient, result = torch.zeros(5, 6).t(), torch.zeros(3, 5), torch.zeros(6, 5)
    kernels = FakeKernels({"glu_backward_dense_float": (), "glu_backward_float": ()})
    (launch,) = planned(gated_linear.PLANNERS, "glu_backward", kernels, result, grad_output=gradient, self=x, dim=0)
    assert isinstance(launch, KernelLaunch)
    assert launch.kernel == "glu_backward_float"
    assert launch.arguments["grad_input_byte_offset"] == 60
    assert launch.arguments["input_byte_offset"] == 12
    assert launch.arguments["sizes"] == [5, 3]
    assert launch.arguments["input_strides"] == [24, 4]
