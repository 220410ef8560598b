"""Fused optimisers: which tensors and chunks go into which launch."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from mpsmith.simulator.shipped.conventions.optimizers import PLANNERS
from mpsmith.simulator.shipped.plan import Declined, KernelLaunch
from support.fake_kernels import FakeKernels, planned

KERNELS = FakeKernels({"fused_sgd_float": ("args", "metadata_args"), "fused_adam_float_float": ("args",)})


def sgd(params: list[Tensor], grads: list[Tensor], **arguments: Any) -> list[KernelLaunch]:
    numbers = {"weight_decay": 0.1, "momentum": 0.0, "lr": 0.01, "dampening": 0.0}
    flags = {"nesterov": False, "maximize": True, "is_first_step": True, "momentum_buffer_list": []}
    given = {"self": params, "grads": grads, **numbers, **flags, **arguments}
    steps = planned(PLANNERS, "_fused_sgd_", KERNELS, *params, **given)
    return [step for step in steps if isinstance(step, KernelLaunch)]


def test_a_threadgroup_has_a_chunk_of_a_tensor() -> None:
    params, grads = [torch.zeros(3), torch.zeros(0), torch.zeros(65537)], [torch.zeros(3), torch.zeros(0)]
    grads.append(torch.zeros(65537))
    (step,) = sgd(params, grads)
    assert step.arguments["metadata_args"] == {
        "numels": [3, 65537],
        "threadgroup_to_tensor": [0, 1, 1],
        "threadgroup_to_chunk": [0, 0, 1],
    }
    tensors = step.arguments["args"]
    assert isinstance(tensors, dict)
    assert [list(map(id, tensors[name])) for name in ("params", "grads")] == [
        [id(params[0]), id(params[2])],
        [id(grads[0]), id(grads[2])],
    ]
    assert (step.arguments["lr"], step.arguments["weight_decay"], step.arguments["maximize"]) == (0.01, 0.1, True)
    assert (step.threads, step.group) == ((3 * 512, 1, 1), (512, 1, 1))


def test_a_launch_takes_32_chunks_and_the_rest_goes_on() -> None:
    large = [torch.zeros(65536 * 34)]
    first, second = sgd(large, large)
    metadata = second.arguments["metadata_args"]
    assert isinstance(metadata, dict)
    assert first.threads == (32 * 512, 1, 1)
    assert metadata == {"numels": [65536 * 34], "threadgroup_to_tensor": [0, 0], "threadgroup_to_chunk": [32, 33]}


def test_a_launch_takes_32_tensors() -> None:
    small = [torch.zeros(2) for _ in range(33)]
    first, second = sgd(small, small)
    assert (first.threads, second.threads) == ((32 * 512, 1, 1), (512, 1, 1))


def test_what_the_host_refuses_is_declined() -> None:
    with pytest.raises(Declined, match="layouts"):
        sgd([torch.zeros(3, 4)], [torch.zeros(4, 3).t()])
