"""Moves the numbers of a recorded call to other ranges: both signs, near zero, a mean much larger than the deviation.

Recorded values are mostly between zero and one. They show neither a wrong sign nor digits lost in small numbers or in
differences of large ones.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import torch
from torch import Tensor

from ...model.case import Case
from .cancellation import SMALL, STATISTICS, smaller_in_turn, with_large_mean
from .case_tensors import call_on_cpu, strided_positions, tensors_of, with_tensors

# If fewer than one element in MIN_DISTINCT of a result is distinct, the inputs are multiplied by FACTOR.
MIN_DISTINCT = 8
FACTOR = 4
SMALL_FLOATS = (torch.float32, torch.float16)


def results_on_cpu(case: Case) -> list[Tensor] | None:
    """The tensors that a functional call returns, or None if the CPU refuses it or returns something else."""
    try:
        result, _ = call_on_cpu(case)
    except Exception:  # whatever the CPU refuses
        return None
    results = list(result) if isinstance(result, (tuple, list)) else [result]
    return results if all(isinstance(r, Tensor) and r.layout is torch.strided for r in results) else None


def with_both_signs(case: Case) -> Case:
    """The call with numbers of both signs, and complex numbers of several angles, if the results get no more NaN.

    Recorded values mostly have one sign, and imaginary parts of zero: a wrong sign or angle would not show.
    """
    mixed = {i: _with_mixed_signs(tensor) for i, tensor in enumerate(tensors_of(case)) if _has_one_sign(tensor)}
    return _unless_more_nan(case, mixed)


def with_unequal_elements(case: Case) -> Case:
    """The call with different elements in floating tensors of equal elements, unless the results get more NaN."""
    equal = {i: t for i, t in enumerate(tensors_of(case)) if _is_varied(t) and bool((t == t.flatten()[0]).all())}
    parts = {i: t.detach() * (1 - torch.arange(t.numel()) / t.numel()).view(t.shape).to(t) for i, t in equal.items()}
    return _unless_more_nan(case, parts)


def with_distinguishable_results(case: Case) -> Case:
    """The call with larger numbers if nearly all elements of its results are equal.

    A threshold may set all elements to zero, or all degrees round to one integer: then a wrong read does not show.
    """
    before = results_on_cpu(case)
    tensors = tensors_of(case)
    if not before or not any(map(_is_varied, tensors)):
        return case
    most = max(result.numel() for result in before)
    if most < MIN_DISTINCT or _distinct(before) > most // MIN_DISTINCT:
        return case
    larger = {id(t): t.detach() * FACTOR for t in tensors if _is_varied(t)}  # a tensor passed twice stays one tensor
    others = {i: larger[id(t)] for i, t in enumerate(tensors) if id(t) in larger}
    scaled = _unless_more_nan(case, others)
    after = results_on_cpu(scaled)
    return scaled if after is not None and _distinct(after) > _distinct(before) else case


def _unless_more_nan(case: Case, others: Mapping[int, Tensor]) -> Case:
    """The case with these tensors if the CPU accepts them and the results have no more NaN; else the case itself."""
    before = results_on_cpu(case) if others else None
    if before is None:
        return case
    changed = with_tensors(case, others, case.title)
    after = results_on_cpu(changed)
    return changed if after is not None and _nan_count(after) <= _nan_count(before) else case


def _is_varied(tensor: Tensor) -> bool:
    """Whether it is a dense floating tensor of several elements."""
    return tensor.is_floating_point() and tensor.layout is torch.strided and tensor.numel() > 1


def _distinct(results: Sequence[Tensor]) -> int:
    """The number of distinct elements of the result that has most."""
    return max(len(torch.unique(_real(result.detach()))) for result in results)


def _real(tensor: Tensor) -> Tensor:
    """The real and imaginary parts as separate numbers: torch does not sort complex ones."""
    return torch.view_as_real(tensor.resolve_conj()) if tensor.is_complex() else tensor


def _has_one_sign(tensor: Tensor) -> bool:
    """Whether all numbers, or all real or all imaginary parts, have one sign."""
    if not (tensor.is_floating_point() or tensor.is_complex()) or tensor.layout is not torch.strided:
        return False
    plain = tensor.detach().resolve_conj()
    parts = (plain.real, plain.imag) if plain.is_complex() else (plain,)
    return tensor.numel() > 1 and any(bool((part >= 0).all() or (part <= 0).all()) for part in parts)


def _with_mixed_signs(tensor: Tensor) -> Tensor:
    """Every second element negated; of complex ones, every third times 1j and the next times 1 + 0.5j."""
    flat = tensor.detach().clone(memory_format=torch.contiguous_format).flatten()
    if flat.is_complex():
        flat[::3] *= 1j
        flat[1::3] *= 1 + 0.5j
    flat[1::2] *= -1
    return flat.view(tensor.shape)


def _nan_count(results: Sequence[Tensor]) -> int:
    """The number of elements that are NaN."""
    return sum(int(result.isnan().sum()) for result in results)


def near_zero(case: Case) -> Iterator[Case]:
    """The call with small numbers in its float32 and float16 tensors."""
    tensors = tensors_of(case)
    small = {i: smaller(tensors[i].detach()) for i in strided_positions(case) if tensors[i].dtype in SMALL_FLOATS}
    if any(tensor.numel() for tensor in small.values()):
        yield replace(with_tensors(case, small, "near zero"), values="near zero")


def smaller(tensor: Tensor) -> Tensor:
    """The tensor with its elements multiplied by the factors `SMALL` in turn."""
    factors = torch.tensor(SMALL).repeat(-(-tensor.numel() // len(SMALL)))[: tensor.numel()]
    return tensor * factors.view(tensor.shape).to(tensor.dtype)


def partly_near_zero(case: Case) -> Iterator[Case]:
    """The call with small numbers in each subset of its tensors, one subset an element.

    If all are small, their quotient is not, and a large summand hides a small one.
    """
    tensors = tensors_of(case)
    small_floats = [i for i in strided_positions(case) if tensors[i].dtype in SMALL_FLOATS and tensors[i].numel()]
    if len(small_floats) > 1:
        small = {i: smaller_in_turn(tensors[i].detach(), 2**bit) for bit, i in enumerate(small_floats)}
        yield replace(with_tensors(case, small, "near zero here and there"), values="near zero")


def far_from_zero(case: Case, operator: str) -> Iterator[Case]:
    """A call that computes a variance, or subtracts a mean, with a mean much larger than the deviation."""
    if STATISTICS.search(operator) and "backward" not in operator:
        yield with_large_mean(case)
