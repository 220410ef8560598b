"""Compares two runs of a case, on the device and on the CPU, in everything that a user can see.

Values, shapes, dtypes and devices of outputs and gradients, and whether they take part in autograd; the containers
that hold them; which outputs share memory with which inputs and with each other (`memory`); the strides of outputs
where PyTorch promises them; and every argument after the call, and once more after the backward (`arguments`).
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import torch
from torch import Tensor

from ..model.case import Case
from .arguments import Argument, DifferenceOrError, compare_arguments, compare_cotangents
from .compare import Agreement, Difference, NoReference, Reference, compare, same_bits
from .distributions import compare_draws
from .eigenvalues import in_cpu_order
from .execution import Execution
from .factorizations import are_undetermined, is_another_factorization, with_cpu_rounding_errors
from .memory import compare_memory, compare_strides
from .phases import with_cpu_phases
from .reference import WideArgument, WideGradient, WideOutput, WideRuns
from .signed_zeros import has_signed_complex_zeros, has_signed_zeros
from .ties import is_in_another_order, names_equal_elements, same_for_equal_elements
from .unspecified import is_factor_of_infinite, is_unspecified_factor, is_unspecified_mode

# Accepted differences in values.
EQUAL_ELEMENTS = "other indices of equal elements"
UNSORTED = "another order, which sorted=False allows"
OTHER_PHASES = "vectors of other phases, or another basis of those that belong to equal values"
OTHER_PIVOTS = "factors by other pivots, which multiply to the matrix as closely"
BEYOND_RANK = "other columns of Q beyond the rank of a matrix, where gradients divide by zero"
UNSPECIFIED = "what is left of a factor that does not exist"
UNSPECIFIED_MODE = "other modes of rows with NaN, which the CPU's sort does not put into an order"
FACTOR_OF_INFINITE = "pivots of a matrix that is not finite"
ROUNDING_ERRORS = "values that are rounding errors beside the largest"
OTHER_ORDER = "eigenvalues in another order, or vectors of other phases"


class Comparison:
    """Compares runs of one case.

    Args:
        case: the case that was run.
        wide: its float64 runs, computed on demand.
        device: where the device's results must be.
        random: whether the operator drew random numbers. Then at most their distribution is compared.

    Attributes:
        notes: the accepted differences so far, each once.
    """

    def __init__(self, case: Case, wide: WideRuns, device: str, *, random: bool) -> None:
        self._case = case
        self._wide = wide
        self._device = device
        self._values = not random and not case.uninitialised
        self._signed_zeros = {False: has_signed_zeros(case), True: has_signed_complex_zeros(case)}
        self.notes: list[str] = []

    def forward(self, actual: Execution, expected: Execution) -> DifferenceOrError:
        """Compare outputs, their memory, and the inputs afterwards."""
        if len(actual.outputs) != len(expected.outputs):
            return Difference(f"returns {len(actual.outputs)} values, the CPU {len(expected.outputs)}")
        largest = 0.0
        for position in range(len(expected.outputs)):
            agreement = self._output(position, actual, expected)
            if isinstance(agreement, Difference):
                prefix = f"output {position}: " if len(expected.outputs) > 1 else ""
                return replace(agreement, text=prefix + agreement.text)
            largest = max(largest, agreement)
        difference = _compare_containers(actual.returned, expected.returned) or self._layouts(actual, expected)
        if difference is not None:
            return difference
        agreement = self._arguments(actual, expected)
        return agreement if isinstance(agreement, Difference) else max(largest, agreement)

    def backward(self, actual: Execution, expected: Execution) -> DifferenceOrError:
        """Compare gradients, and the side effects of computing them."""
        largest = 0.0
        # Gradients beyond the rank may differ even where the factors agree.
        if "qr" in self._case.entry and is_another_factorization(self._case, actual.outputs, expected.outputs):
            self._note(BEYOND_RANK)
        for position, (mine, cpus) in enumerate(zip(actual.gradients, expected.gradients, strict=True)):
            agreement = self._gradient(position, mine, cpus)
            if isinstance(agreement, Difference):
                return replace(agreement, text=f"gradient {position}: {agreement.text}")
            largest = max(largest, agreement)
        agreement = compare_cotangents(actual, expected) or self._after_backward(actual, expected)
        return agreement if isinstance(agreement, Difference) else largest

    def _after_backward(self, actual: Execution, expected: Execution) -> DifferenceOrError:
        """Compare outputs and arguments again: a backward may write into tensors that the forward saved."""
        for position, mine in enumerate(actual.outputs):
            agreement = self._output(position, actual, expected) if self._values and isinstance(mine, Tensor) else 0.0
            if isinstance(agreement, Difference):
                return replace(agreement, text=f"output {position} after the backward: {agreement.text}")
        agreement = self._arguments(actual, expected)
        if isinstance(agreement, Difference):
            return replace(agreement, text=f"after the backward, {agreement.text}")
        return agreement

    def _arguments(self, actual: Execution, expected: Execution) -> DifferenceOrError:
        written = partial(self._written, actual, expected)
        accepts = self._accepts_around, self._accepts_metadata
        return compare_arguments(self._case, actual, expected, written, *accepts, values=self._values)

    def _layouts(self, actual: Execution, expected: Execution) -> Difference | None:
        in_memory = compare_memory(actual, expected, self._case.same_memory)
        return in_memory or compare_strides(self._case, actual, expected)

    def _accepts_metadata(self, argument: Argument) -> bool:
        return False

    def _accepts_around(self, argument: Argument, mine: Tensor, cpus: Tensor, difference: Difference) -> bool:
        return False

    def _written(self, actual: Execution, expected: Execution, argument: Argument) -> DifferenceOrError:
        agreement = self._compare(argument.mine, argument.cpus, WideArgument(self._wide, argument.position), True)
        if isinstance(agreement, Difference) and _are_written(argument, actual, expected):
            return 0.0  # it has been compared as an output
        return agreement if isinstance(agreement, Difference) else agreement.max_error

    def _compare(self, actual: Tensor, expected: Tensor, wide: Reference, values: bool) -> Agreement | Difference:
        agreement = compare(
            actual,
            expected,
            wide,
            device=self._device,
            values=values,
            rounded_to=self._case.rounded_to,
            signed_zeros=self._signed_zeros[expected.is_complex()] and not isinstance(wide, WideGradient),
        )
        if isinstance(agreement, Agreement) and agreement.note:
            self._note(agreement.note)
        return agreement

    def _note(self, note: str) -> None:
        if note not in self.notes:
            self.notes.append(note)

    def _output(self, position: int, mine: Execution, cpus: Execution) -> DifferenceOrError:
        actual, expected = mine.outputs[position], cpus.outputs[position]
        if isinstance(expected, Tensor) and isinstance(actual, Tensor):
            agreement = self._compare(actual, expected, WideOutput(self._wide, position), self._values)
            if isinstance(agreement, Difference):
                agreement = self._reordered(position, mine, cpus) or agreement
            if isinstance(agreement, Difference):
                reason = self._accepted_anyway(position, mine, cpus)
                if not reason:
                    return agreement
                # Everything but the values is still compared.
                agreement = self._compare(actual, expected, WideOutput(self._wide, position), values=False)
                if isinstance(agreement, Difference):
                    return agreement
                self._note(reason)
            if actual.requires_grad is not expected.requires_grad:
                return Difference(f"{_requires(actual)} a gradient, the CPU's {_requires(expected)} one")
            if self._case.same_memory and actual.is_leaf is not expected.is_leaf:
                return Difference(f"is {_leaf(actual)} of autograd, the CPU's {_leaf(expected)}")
            difference = compare_draws(actual, expected) if self._case.distribution else ""
            return Difference(difference) if difference else agreement.max_error
        if type(actual) is not type(expected):
            return Difference(f"is {type(actual).__name__}, not {type(expected).__name__}")
        if isinstance(expected, torch.dtype) and self._case.rounded_to is None:
            return 0.0 if actual is expected else Difference(f"is {actual}, not {expected}")
        if not self._values or not isinstance(expected, (int, float, complex, str)):
            return 0.0
        return _compare_numbers(actual, expected)

    def _reordered(self, position: int, mine: Execution, cpus: Execution) -> Agreement | None:
        """Compare eigenvalues and vectors in the CPU's order and phases; None if they differ."""
        if not self._values:
            return None
        ordered = in_cpu_order(self._case, position, mine.outputs, cpus.outputs)
        rephased = with_cpu_phases(self._case, position, mine.outputs, cpus.outputs)
        near_zero = with_cpu_rounding_errors(self._case, position, mine.outputs, cpus.outputs)
        of_phases = ((OTHER_PHASES, candidate) for candidate in rephased)
        for note, output in ((OTHER_ORDER, ordered), *of_phases, (ROUNDING_ERRORS, near_zero)):
            if output is None:
                continue
            comparison = self._compare(output, cpus.outputs[position], WideOutput(self._wide, position), True)
            if isinstance(comparison, Agreement):
                self._note(note)
                return comparison
        return None

    def _accepted_anyway(self, position: int, mine: Execution, cpus: Execution) -> str:
        """Why a result other than the CPU's is accepted, because the operator allows it; "" if it is not."""
        values = cpus.outputs[position - 1] if position and self._case.form == "in a row" else None
        of_values = values.dtype if isinstance(values, Tensor) and values.is_floating_point() else None
        if names_equal_elements(self._case, mine.outputs[position], cpus.outputs[position], of_values):
            return EQUAL_ELEMENTS
        if is_in_another_order(self._case, position, mine.outputs, cpus.outputs):
            return UNSORTED
        undetermined = are_undetermined(cpus.outputs, position)
        if undetermined and is_another_factorization(self._case, mine.outputs, cpus.outputs):
            if "ldl" in self._case.entry:
                return OTHER_PIVOTS
            return BEYOND_RANK if "qr" in self._case.entry else OTHER_PHASES
        if is_unspecified_mode(self._case, position, mine.outputs, cpus.outputs):
            return UNSPECIFIED_MODE
        if is_factor_of_infinite(self._case, position, mine.outputs, cpus.outputs):
            return FACTOR_OF_INFINITE
        return UNSPECIFIED if is_unspecified_factor(self._case, position, mine.outputs, cpus.outputs) else ""

    def _gradient(self, position: int, actual: Tensor | None, expected: Tensor | None) -> DifferenceOrError:
        if actual is None or expected is None:
            return 0.0 if actual is expected else Difference(f"is {_presence(actual)}, the CPU's {_presence(expected)}")
        # A gradient through a factor that does not exist is unspecified as that is.
        values = self._values and not {UNSPECIFIED, BEYOND_RANK} & {*self.notes}
        agreement = self._compare(actual, expected, WideGradient(self._wide, position), values)
        if isinstance(agreement, Difference) and same_for_equal_elements(self._case, actual, expected):
            self._note(EQUAL_ELEMENTS)
            return 0.0
        return agreement if isinstance(agreement, Difference) else agreement.max_error


def _are_written(argument: Argument, actual: Execution, expected: Execution) -> bool:
    """Whether the call wrote the same output into an argument on both devices."""
    for mine, cpus in zip(actual.outputs, expected.outputs, strict=True):
        if isinstance(mine, Tensor) and isinstance(cpus, Tensor) and cpus.shape == argument.cpus.shape:
            pairs = ((mine, argument.mine), (cpus, argument.cpus))
            if all(same_bits(left.detach().cpu(), right.detach().cpu()) for left, right in pairs):
                return True
    return False


def _compare_numbers(actual: Any, expected: Any) -> DifferenceOrError:
    if isinstance(expected, (float, complex)):
        dtype = torch.complex64 if isinstance(expected, complex) else torch.float32
        left, right = torch.as_tensor(actual, dtype=dtype), torch.as_tensor(expected, dtype=dtype)
        agreement = compare(left, right, NoReference(), device="cpu")
        return agreement if isinstance(agreement, Difference) else agreement.max_error
    return 0.0 if actual == expected else Difference(f"is {actual!r}, not {expected!r}")


def _compare_containers(actual: Any, expected: Any) -> Difference | None:
    """Compare the tuples, lists and named tuples of the results."""
    mine, cpus = _containers(actual), _containers(expected)
    return None if mine == cpus else Difference(f"is returned as {mine}, not {cpus}")


def _containers(tree: Any) -> str:
    """The container types of a result, with a star for each leaf: "sort(*, *)"."""
    if isinstance(tree, (tuple, list)):
        return f"{type(tree).__name__}({', '.join(map(_containers, tree))})"
    if isinstance(tree, dict):
        return f"dict({', '.join(f'{name}={_containers(branch)}' for name, branch in tree.items())})"
    return "*"


def _requires(tensor: Tensor) -> str:
    return "requires" if tensor.requires_grad else "does not require"


def _leaf(tensor: Tensor) -> str:
    return "a leaf" if tensor.is_leaf else "no leaf"


def _presence(gradient: Tensor | None) -> str:
    return "absent" if gradient is None else "present"
