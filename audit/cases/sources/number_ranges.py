"""The numbers of a recorded call in other ranges: both signs, near zero, a mean that is large beside the deviation.

Recorded values are mostly between zero and one. With these a wrong sign is not found, nor lost digits of small numbers
or of differences of large ones.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import torch
from torch import Tensor

from ...model.case import Case
from .cancellation import SMALL, STATISTICS, smaller_in_turn, with_large_mean
from .case_tensors import call_on_cpu, strided_positions, tensors_of, with_tensors

# Results tell little where not one in so many elements is different from all others; then numbers are larger.
FEW = 8
FACTOR = 4
NARROW = (torch.float32, torch.float16)


def results_on_cpu(case: Case) -> list[Tensor] | None:
    """The tensors that a functional call returns, or None where the CPU refuses it or returns else."""
    try:
        result, _ = call_on_cpu(case)
    except Exception:  # whatever the CPU refuses
        return None
    results = list(result) if isinstance(result, (tuple, list)) else [result]
    return results if all(isinstance(each, Tensor) and each.layout is torch.strided for each in results) else None


def in_all_directions(case: Case) -> Case:
    """The call with every second number negative, and complex ones turned, if the results then have no further NaN.

    Recorded values mostly have one sign, and imaginary parts of zero: a wrong sign or angle would not show.
    """
    turned = {i: _turned(tensor) for i, tensor in enumerate(tensors_of(case)) if _points_one_way(tensor)}
    return _if_defined(case, turned)


def spread(case: Case) -> Case:
    """The call with floating tensors whose elements are all equal scaled down, each element by another factor.

    Not if the results then have further NaN.
    """
    equal = {i: t for i, t in enumerate(tensors_of(case)) if _counts(t) and bool((t == t.flatten()[0]).all())}
    parts = {i: t.detach() * (1 - torch.arange(t.numel()) / t.numel()).view(t.shape).to(t) for i, t in equal.items()}
    return _if_defined(case, parts)


def with_distinguishable_results(case: Case) -> Case:
    """The call with larger numbers if nearly all elements of its results are equal.

    A threshold may cut off everything, or a degree be rounded down to one integer: then a wrong read does not show.
    """
    before = results_on_cpu(case)
    tensors = tensors_of(case)
    if not before or not any(map(_counts, tensors)):
        return case
    most = max(result.numel() for result in before)
    if most < FEW or _different(before) > most // FEW:
        return case
    larger = {id(t): t.detach() * FACTOR for t in tensors if _counts(t)}  # a tensor that is given twice stays one
    others = {i: larger[id(t)] for i, t in enumerate(tensors) if id(t) in larger}
    made = _if_defined(case, others)
    after = results_on_cpu(made)
    return made if after is not None and _different(after) > _different(before) else case


def _if_defined(case: Case, others: Mapping[int, Tensor]) -> Case:
    """The case with these tensors if the CPU accepts them and the results have no further NaN; else the case itself."""
    before = results_on_cpu(case) if others else None
    if before is None:
        return case
    made = with_tensors(case, others, case.title)
    after = results_on_cpu(made)
    return made if after is not None and _undefined(after) <= _undefined(before) else case


def _counts(tensor: Tensor) -> bool:
    return tensor.is_floating_point() and tensor.layout is torch.strided and tensor.numel() > 1


def _different(results: Sequence[Tensor]) -> int:
    """How many different elements there are in the result that has most."""
    return max(len(torch.unique(_real(result.detach()))) for result in results)


def _real(tensor: Tensor) -> Tensor:
    """The real and imaginary parts as separate numbers: torch does not sort complex ones."""
    return torch.view_as_real(tensor.resolve_conj()) if tensor.is_complex() else tensor


def _points_one_way(tensor: Tensor) -> bool:
    """Whether all numbers, or the real or the imaginary parts of them all, have one sign."""
    if not (tensor.is_floating_point() or tensor.is_complex()) or tensor.layout is not torch.strided:
        return False
    plain = tensor.detach().resolve_conj()
    parts = (plain.real, plain.imag) if plain.is_complex() else (plain,)
    return tensor.numel() > 1 and any(bool((part >= 0).all() or (part <= 0).all()) for part in parts)


def _turned(tensor: Tensor) -> Tensor:
    """Every second element negative; every third complex one with its parts exchanged, so that it is imaginary."""
    flat = tensor.detach().clone(memory_format=torch.contiguous_format).flatten()
    if flat.is_complex():
        flat[::3] *= 1j
        flat[1::3] *= 1 + 0.5j
    flat[1::2] *= -1
    return flat.view(tensor.shape)


def _undefined(results: Sequence[Tensor]) -> int:
    """How many elements are NaN."""
    return sum(int(result.isnan().sum()) for result in results)


def near_zero(case: Case) -> Iterator[Case]:
    """The tensors of one floating dtype small, by another factor for each element."""
    tensors = tensors_of(case)
    small = {i: smaller(tensors[i].detach()) for i in strided_positions(case) if tensors[i].dtype in NARROW}
    if any(tensor.numel() for tensor in small.values()):
        yield replace(with_tensors(case, small, "near zero"), values="near zero")


def smaller(tensor: Tensor) -> Tensor:
    """The tensor times `SMALL` in turn."""
    factors = torch.tensor(SMALL).repeat(-(-tensor.numel() // len(SMALL)))[: tensor.numel()]
    return tensor * factors.view(tensor.shape).to(tensor.dtype)


def partly_near_zero(case: Case) -> Iterator[Case]:
    """Of several tensors any of them small where others are not: in some element each set of them.

    A quotient of two small numbers is none, and what is added to a small number hides it.
    """
    tensors = tensors_of(case)
    narrow = [i for i in strided_positions(case) if tensors[i].dtype in NARROW and tensors[i].numel()]
    if len(narrow) > 1:
        small = {i: smaller_in_turn(tensors[i].detach(), 2**place) for place, i in enumerate(narrow)}
        yield replace(with_tensors(case, small, "near zero here and there"), values="near zero")


def far_from_zero(case: Case, operator: str) -> Iterator[Case]:
    """A call that computes a variance, or subtracts a mean, on numbers whose mean is large beside their spread."""
    if STATISTICS.search(operator) and "backward" not in operator:
        yield with_large_mean(case)
