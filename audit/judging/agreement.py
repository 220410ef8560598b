"""Whether two runs of a case, on the device and on the CPU, agree in everything a user can see.

Values, shapes, dtypes and devices of outputs and gradients; which outputs share memory with which inputs; the strides
of outputs where PyTorch promises them; and that inputs which the CPU leaves alone are left alone.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from ..cases import Case
from ..tree import leaves
from .compare import Difference, NoReference, compare
from .distributions import compare_draws
from .execution import Execution
from .reference import WideGradient, WideOutput, WideRuns

Found = Difference | float  # a difference, or the largest error in units of the tolerance


class Comparison:
    """Compares runs of one case.

    Args:
        case: the case that was run.
        wide: its float64 runs, computed when they are needed.
        device: where the device's results must be.
        random: whether the operator drew random numbers; then values are not compared, at most their distribution.
    """

    def __init__(self, case: Case, wide: WideRuns, device: str, *, random: bool) -> None:
        self._case = case
        self._wide = wide
        self._device = device
        self._values = not random and not case.uninitialised

    def forward(self, actual: Execution, expected: Execution) -> Found:
        """Compare outputs, their memory, and the inputs afterwards."""
        if len(actual.outputs) != len(expected.outputs):
            return Difference(f"returns {len(actual.outputs)} values, the CPU {len(expected.outputs)}")
        largest = 0.0
        for position, (mine, cpus) in enumerate(zip(actual.outputs, expected.outputs, strict=True)):
            agreement = self._output(position, mine, cpus)
            if isinstance(agreement, Difference):
                prefix = f"output {position}: " if len(expected.outputs) > 1 else ""
                return Difference(prefix + agreement.text, agreement.max_error)
            largest = max(largest, agreement)
        return (
            self._memory(actual, expected)
            or self._strides(actual, expected)
            or self._untouched(actual, expected)
            or largest
        )

    def backward(self, actual: Execution, expected: Execution) -> Found:
        """Compare gradients."""
        largest = 0.0
        for position, (mine, cpus) in enumerate(zip(actual.gradients, expected.gradients, strict=True)):
            agreement = self._gradient(position, mine, cpus)
            if isinstance(agreement, Difference):
                return Difference(f"gradient {position}: {agreement.text}", agreement.max_error)
            largest = max(largest, agreement)
        return largest

    def _output(self, position: int, actual: Any, expected: Any) -> Found:
        if isinstance(expected, Tensor) and isinstance(actual, Tensor):
            agreement = compare(
                actual,
                expected,
                WideOutput(self._wide, position),
                device=self._device,
                values=self._values,
                rounded_to=self._case.rounded_to,
            )
            if isinstance(agreement, Difference):
                return agreement
            difference = compare_draws(actual, expected) if self._case.distribution else ""
            return Difference(difference) if difference else agreement.max_error
        if type(actual) is not type(expected):
            return Difference(f"is {type(actual).__name__}, not {type(expected).__name__}")
        if not self._values or not isinstance(expected, (int, float, complex, str)):
            return 0.0
        return _compare_numbers(actual, expected)

    def _gradient(self, position: int, actual: Tensor | None, expected: Tensor | None) -> Found:
        if actual is None or expected is None:
            return 0.0 if actual is expected else Difference(f"is {_presence(actual)}, the CPU's {_presence(expected)}")
        agreement = compare(
            actual,
            expected,
            WideGradient(self._wide, position),
            device=self._device,
            values=self._values,
            rounded_to=self._case.rounded_to,
        )
        return agreement if isinstance(agreement, Difference) else agreement.max_error

    def _memory(self, actual: Execution, expected: Execution) -> Difference | None:
        """An output shares the storage of an input on the device exactly where it does on the CPU."""
        mine, cpus = _tensors(actual.arguments), _tensors(expected.arguments)
        my_storages, cpu_storages = _storages(mine), _storages(cpus)
        for position, (output, cpu_output) in enumerate(zip(actual.outputs, expected.outputs, strict=True)):
            if not isinstance(output, Tensor) or output.layout is not torch.strided:
                continue
            shared = _shared_with(output, my_storages)
            cpu_shared = _shared_with(cpu_output, cpu_storages)
            if (shared is None) != (cpu_shared is None):
                what = "shares no memory with an input" if shared is None else f"shares the memory of input {shared}"
                return Difference(f"output {position} {what}, unlike the CPU's")
            if shared is not None and output.stride() != cpu_output.stride() and output.numel() > 1:
                return Difference(f"output {position}, a view, has stride {output.stride()}, not {cpu_output.stride()}")
        return None

    def _strides(self, actual: Execution, expected: Execution) -> Difference | None:
        """Where PyTorch promises strides, the outputs have the CPU's.

        Elementwise operators keep the memory format of their inputs ("Channels Last Memory Format in PyTorch" states
        the rule), which is one for all devices as long as the inputs are dense and do not overlap.
        """
        if not self._case.elementwise or not all(map(_is_dense, _tensors((self._case.args, self._case.kwargs)))):
            return None
        for position, (output, cpus) in enumerate(zip(actual.outputs, expected.outputs, strict=True)):
            if isinstance(output, Tensor) and output.layout is torch.strided and _steps(output) != _steps(cpus):
                return Difference(f"output {position} has stride {output.stride()}, not {cpus.stride()}")
        return None

    def _untouched(self, actual: Execution, expected: Execution) -> Difference | None:
        """Inputs that the CPU's run leaves as they were are as they were on the device too."""
        if not self._values:  # an input that receives random or undefined values may keep its own by chance
            return None
        originals = _tensors((self._case.args, self._case.kwargs))
        triples = zip(_tensors(actual.arguments), _tensors(expected.arguments), originals, strict=True)
        for position, (mine, cpus, original) in enumerate(triples):
            changed = cpus.shape != original.shape or not same_bits(cpus, original)
            if mine.device.type == "cpu" or changed:
                continue
            if mine.shape != original.shape or not same_bits(mine.detach().cpu(), original):
                return Difference(f"input {position} was changed, which the CPU leaves alone")
        return None


def same_bits(left: Tensor, right: Tensor) -> bool:
    """Whether two CPU tensors have the same shape and values, NaN being equal to NaN; sparse ones count as equal."""
    if left.layout is not torch.strided or right.layout is not torch.strided:
        return True
    if torch.equal(left, right):
        return True
    if left.shape != right.shape or not (left.is_floating_point() or left.is_complex()):
        return False
    return bool(((left == right) | (left.isnan() & right.isnan())).all())


def _compare_numbers(actual: Any, expected: Any) -> Found:
    if isinstance(expected, (float, complex)):
        dtype = torch.complex64 if isinstance(expected, complex) else torch.float32
        left, right = torch.as_tensor(actual, dtype=dtype), torch.as_tensor(expected, dtype=dtype)
        agreement = compare(left, right, NoReference(), device="cpu")
        return agreement if isinstance(agreement, Difference) else agreement.max_error
    return 0.0 if actual == expected else Difference(f"is {actual!r}, not {expected!r}")


def _tensors(tree: Any) -> list[Tensor]:
    return [leaf for leaf in leaves(tree) if isinstance(leaf, Tensor)]


def _storages(tensors: list[Tensor]) -> dict[int, int]:
    first_positions: dict[int, int] = {}
    for position, tensor in enumerate(tensors):
        if tensor.layout is torch.strided:
            first_positions.setdefault(tensor.untyped_storage()._cdata, position)
    return first_positions


def _shared_with(output: Any, storages: dict[int, int]) -> int | None:
    if not isinstance(output, Tensor) or output.layout is not torch.strided:
        return None
    return storages.get(output.untyped_storage()._cdata)


def _is_dense(tensor: Tensor) -> bool:
    """Whether the tensor's elements fill a piece of memory, each at a place of its own."""
    if tensor.layout is not torch.strided:
        return False
    filled = 1
    for step, size in sorted(zip(tensor.stride(), tensor.shape, strict=True)):
        if size > 1 and step != filled:
            return False
        filled *= size
    return True


def _steps(tensor: Tensor) -> list[int]:
    """The strides that matter: a dimension of one element is never stepped along."""
    if tensor.numel() == 0:
        return []
    return [step for size, step in zip(tensor.shape, tensor.stride(), strict=True) if size > 1]


def _presence(gradient: Tensor | None) -> str:
    return "absent" if gradient is None else "present"
