"""Fused optimisers and the gradient scaler: many tensors in one launch, in chunks.

The host code is aten/src/ATen/native/mps/operations/{MultiTensorApply.h,FusedAdam*.mm,FusedSgdKernel.mm,Amp.mm}: a
threadgroup works on a chunk of one tensor. A launch has up to 32 tensors and 32 chunks; the addresses of the tensors
are in an argument buffer.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from torch import Tensor

from ..call import Call
from ..plan import Declined, KernelLaunch, Planner, ReleaseKernels, Step, in_line, required
from .metal_types import metal_name
from .zeroing import is_dense

_CHUNK = 65536
_MOST = 32
"""Tensors of a launch, and chunks."""
_OPTIMIZER_GROUP, _SCALER_GROUP = 512, 64


@dataclass
class _Batch:
    """The input of one launch: indices of tensors in the lists, and the tensor and chunk of each threadgroup."""

    tensors: list[int] = field(default_factory=list)
    numels: list[int] = field(default_factory=list)
    to_tensor: list[int] = field(default_factory=list)
    to_chunk: list[int] = field(default_factory=list)

    @property
    def metadata(self) -> dict[str, object]:
        """The kernel's argument."""
        return {"numels": self.numels, "threadgroup_to_tensor": self.to_tensor, "threadgroup_to_chunk": self.to_chunk}


def _batches(numels: Sequence[int]) -> Iterator[_Batch]:
    """Launches over tensors of these sizes; a tensor that does not fit continues in the next launch."""
    batch = _Batch()
    for index, numel in enumerate(numels):
        chunks = -(-numel // _CHUNK)
        for chunk in range(chunks):
            if not batch.tensors or batch.tensors[-1] != index:
                batch.tensors.append(index)
                batch.numels.append(numel)
            batch.to_tensor.append(len(batch.tensors) - 1)
            batch.to_chunk.append(chunk)
            tensors_full = len(batch.tensors) == _MOST and chunk == chunks - 1
            if tensors_full or len(batch.to_chunk) == _MOST:
                yield batch
                batch = _Batch()
    if batch.to_chunk:
        yield batch


def _optimized(
    kernels: ReleaseKernels, name: str, lists: Mapping[str, Sequence[Tensor]], numbers: Mapping[str, object]
) -> Sequence[Step]:
    first = next(iter(lists.values()))
    if any(not _alike(tensors) for tensors in zip(*(lists[key] for key in lists if key != "state_steps"), strict=True)):
        raise Declined("tensors of different layouts, which the host refuses")
    name = required(kernels, name)
    steps: list[Step] = []
    for batch in _batches([tensor.numel() for tensor in first]):
        arguments = {
            "args": {key: [tensors[index] for index in batch.tensors] for key, tensors in lists.items()},
            "metadata_args": batch.metadata,
            **numbers,
        }
        threads = len(batch.to_chunk) * _OPTIMIZER_GROUP
        steps.append(KernelLaunch(name, arguments, (threads, 1, 1), (_OPTIMIZER_GROUP, 1, 1)))
    return steps


def _alike(tensors: Sequence[Tensor]) -> bool:
    """Whether these tensors are dense and have the same strides."""
    return is_dense(tensors[0]) and all(tensor.stride() == tensors[0].stride() for tensor in tensors)


def _adam(name: str) -> Planner:
    def plan(call: Call, kernels: ReleaseKernels) -> Sequence[Step]:
        if not call["self"]:
            raise Declined("no tensor")
        lists = {
            "params": call["self"],
            "grads": call["grads"],
            "exp_avgs": call["exp_avgs"],
            "exp_avg_sqs": call["exp_avg_sqs"],
            **({"max_exp_avg_sqs": call["max_exp_avg_sqs"]} if call["amsgrad"] else {}),
            "state_steps": call["state_steps"],
        }
        dtypes = f"{metal_name(call['self'][0].dtype)}_{metal_name(call['state_steps'][0].dtype)}"
        kernel = f"fused_{name}_{'amsgrad_' if call['amsgrad'] else ''}{dtypes}"
        numbers = _numbers(call, "lr", "beta1", "beta2", "weight_decay", "eps", "maximize")
        return _optimized(kernels, kernel, lists, numbers)

    return plan


def _sgd(call: Call, kernels: ReleaseKernels) -> Sequence[Step]:
    if not call["self"]:
        raise Declined("no tensor")
    lists = {"params": call["self"], "grads": call["grads"]}
    dtype = metal_name(call["self"][0].dtype)
    if not call["momentum_buffer_list"]:
        numbers = _numbers(call, "weight_decay", "lr", "maximize")
        return _optimized(kernels, f"fused_sgd_{dtype}", lists, numbers)
    lists["momentum_buffer_list"] = call["momentum_buffer_list"]
    numbers = _numbers(call, "weight_decay", "momentum", "lr", "dampening", "nesterov", "maximize", "is_first_step")
    return _optimized(kernels, f"fused_sgd_momentum_{dtype}", lists, numbers)


def _numbers(call: Call, *names: str) -> dict[str, object]:
    """The arguments with these names, and the tensors of the gradient scaler or None."""
    numbers = {name: call[name] for name in names}
    rate = numbers["lr"]
    if isinstance(rate, Tensor) and "lr" in call.on_host:
        numbers["lr"] = rate.item()
    return numbers | {"grad_scale": call["grad_scale"], "found_inf": call["found_inf"]}


# ------------------------------------------------------------------------------------------------- gradient scaler
def _check_and_unscale(call: Call, kernels: ReleaseKernels) -> Sequence[Step]:
    tensors = [tensor for tensor in call["self"] if tensor.numel()]
    if not tensors:
        raise Declined("no tensor")
    if any(not is_dense(tensor) or tensor.dtype != tensors[0].dtype for tensor in tensors):
        raise Declined("tensors of different dtypes or with gaps")
    dtype = metal_name(tensors[0].dtype)
    scaling = {"foundInf": call["found_inf"], "invScale": call["inv_scale"]}
    if len(call["self"]) == 1:
        name = required(kernels, f"ampNonFiniteCheckAndUnscaleSingle_{dtype}")
        return [KernelLaunch(name, {"data": tensors[0], **scaling}, *in_line(tensors[0].numel()))]
    name = required(kernels, f"ampNonFiniteCheckAndUnscale_{dtype}")
    steps: list[Step] = []
    for batch in _batches([tensor.numel() for tensor in tensors]):
        arguments = {
            "pointerArgs": {"data": [tensors[index] for index in batch.tensors]},
            "metadata": batch.metadata,
            **scaling,
        }
        threads = len(batch.to_chunk) * _SCALER_GROUP
        steps.append(KernelLaunch(name, arguments, (threads, 1, 1), (_SCALER_GROUP, 1, 1)))
    return steps


def _update_scale(call: Call, kernels: ReleaseKernels) -> Sequence[Step]:
    scale = call["self"]
    arguments = {
        "scale": scale,
        "growth_tracker": call["growth_tracker"],
        "foundInf": call["found_inf"],
        "scaleGrowthFactor": call["scale_growth_factor"],
        "scaleBackoffFactor": call["scale_backoff_factor"],
        "growthInterval": call["growth_interval"],
    }
    return [KernelLaunch(required(kernels, f"ampUpdateScale_{metal_name(scale.dtype)}"), arguments, *in_line(1))]


PLANNERS: dict[str, Planner] = {
    "_fused_adam_": _adam("adam"),
    "_fused_adam_.tensor_lr": _adam("adam"),
    "_fused_adamw_": _adam("adamw"),
    "_fused_adamw_.tensor_lr": _adam("adamw"),
    "_fused_sgd_": _sgd,
    "_fused_sgd_.tensor_lr": _sgd,
    "_amp_foreach_non_finite_check_and_unscale_": _check_and_unscale,
    "_amp_update_scale_": _update_scale,
}
