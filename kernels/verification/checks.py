"""Runs the subjects of a family on mps and compares with the CPU: values, shapes, dtypes and gradients."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch

from .layouts import LAYOUTS, Layout, laid_out, placed
from .subjects import SUBJECTS, Subject

# Relative and absolute tolerance of a single rounding to the dtype, against a reference of higher precision.
_HALF_TOLERANCE = {torch.float16: (2e-3, 2e-3), torch.bfloat16: (1.6e-2, 1.6e-2)}


@dataclass(frozen=True)
class Case:
    """One call with one dtype and layout. `check` is "numerics" or "gradients"."""

    subject: Subject
    dtype: torch.dtype
    layout: Layout
    arguments: tuple[Any, ...]
    check: str

    def __str__(self) -> str:
        shapes = [tuple(a.shape) if isinstance(a, torch.Tensor) else a for a in self.arguments[:3]]
        dtype = str(self.dtype).removeprefix("torch.")
        return f"{self.subject.name}, {dtype}, {self.layout}, {self.check}, {shapes}"


@dataclass(frozen=True)
class Failure:
    """A case that did not come out right, and how."""

    case: Case
    reason: str

    def __str__(self) -> str:
        return f"{self.case}: {self.reason}"


def cases(
    subject: Subject, layouts: Sequence[Layout] = LAYOUTS, dtypes: Sequence[torch.dtype] | None = None
) -> Iterator[Case]:
    """The cases of a subject, in a fixed order."""
    for dtype in subject.dtypes if dtypes is None else dtypes:
        for layout in layouts:
            if layout == "expanded" and not subject.expands:
                continue
            for arguments in subject.inputs(dtype):
                laid = tuple(_mapped(arguments, partial(_laid_out, layout=layout)))
                yield Case(subject, dtype, layout, laid, "numerics")
                if subject.gradients and dtype.is_floating_point:
                    yield Case(subject, dtype, layout, laid, "gradients")


def failures(family: str, layouts: Sequence[Layout] = LAYOUTS) -> Iterator[Failure | None]:
    """Run every case of a family with the kernels that are registered: a failure, or None for each that passed."""
    for subject in SUBJECTS[family]:
        for case in cases(subject, layouts):
            yield run(case)


def run(case: Case) -> Failure | None:
    """Run one case; None when it passed."""
    try:
        compare = _compare_gradients if case.check == "gradients" else _compare_values
        compare(case)
    except (AssertionError, RuntimeError, NotImplementedError, ValueError, TypeError, IndexError) as error:
        first = next((line for line in str(error).splitlines() if line.strip()), type(error).__name__)
        detail = " ".join(line for line in str(error).splitlines() if line.startswith("Greatest"))
        return Failure(case, f"{type(error).__name__}: {first} {detail}".rstrip())
    return None


def _compare_values(case: Case) -> None:
    expected = _tensors(case.subject.call(*_reference(case)))
    actual = _tensors(case.subject.call(*_mapped(case.arguments, _on_mps)))
    _require_same(case, actual, expected)


def _compare_gradients(case: Case) -> None:
    expected = _gradients(case.subject, _reference(case))
    actual = _gradients(case.subject, _mapped(case.arguments, _on_mps))
    _require_same(case, actual, expected)


def _gradients(subject: Subject, arguments: list[Any]) -> list[torch.Tensor]:
    leaves = [arguments[position].requires_grad_() for position in subject.gradients]
    result = next(t for t in _tensors(subject.call(*arguments)) if t.requires_grad)
    generator = torch.Generator().manual_seed(11)
    seed = torch.rand(result.shape, generator=generator).to(result.device, result.dtype)
    return list(torch.autograd.grad(result, leaves, seed))


def _require_same(case: Case, actual: Sequence[torch.Tensor], expected: Sequence[torch.Tensor]) -> None:
    for ours, theirs in zip(actual, expected, strict=True):
        if ours.device.type != "mps":
            raise AssertionError(f"a result is on {ours.device}")
        dtype = _narrowed(case, theirs.dtype)
        relative, absolute = _tolerance(case, dtype)
        torch.testing.assert_close(
            ours.cpu(), theirs.to(dtype), rtol=relative, atol=absolute, equal_nan=True, check_stride=False
        )


def _tolerance(case: Case, dtype: torch.dtype) -> tuple[float, float]:
    """Exact for results that are no fractions; gradients of half precision are composed of several roundings."""
    if not dtype.is_floating_point and not dtype.is_complex:
        return 0.0, 0.0
    relative, absolute = _HALF_TOLERANCE.get(dtype, case.subject.tolerance)
    factor = case.subject.gradient_factor if case.check == "gradients" and dtype in _HALF_TOLERANCE else 1
    return factor * relative, factor * absolute


def _narrowed(case: Case, dtype: torch.dtype) -> torch.dtype:
    """The dtype that a result has on mps, from that of the reference, which was computed in higher precision."""
    if dtype.is_complex:
        return torch.complex64
    return case.dtype if case.dtype.is_floating_point and dtype == case.subject.reference else dtype


def _reference(case: Case) -> list[Any]:
    """The arguments on the CPU, floating ones in the reference's precision, with memory of their own."""

    def widened(tensor: torch.Tensor) -> torch.Tensor:
        copy = placed(tensor, "cpu")
        if tensor.dtype in (torch.float32, torch.float16, torch.bfloat16) and case.dtype.is_floating_point:
            return copy.to(case.subject.reference)
        return copy.to(torch.complex128) if tensor.dtype == torch.complex64 else copy

    return _mapped(case.arguments, widened)


def _on_mps(tensor: torch.Tensor) -> torch.Tensor:
    return placed(tensor, "mps")


def _laid_out(tensor: torch.Tensor, layout: Layout) -> torch.Tensor:
    """In the layout; indices are not repeated, for what is written twice is not defined."""
    return laid_out(tensor, "contiguous" if layout == "expanded" and not tensor.is_floating_point() else layout)


def _mapped(arguments: Sequence[Any], change: Callable[[torch.Tensor], torch.Tensor]) -> list[Any]:
    return [
        change(a) if isinstance(a, torch.Tensor) else [change(t) for t in a] if _is_tensors(a) else a for a in arguments
    ]


def _is_tensors(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(item, torch.Tensor) for item in value)


def _tensors(result: Any) -> list[torch.Tensor]:
    return [result] if isinstance(result, torch.Tensor) else list(result)
