"""Different inputs for the cases of a kernel under test: new values, other shapes; and properties of a case."""

from __future__ import annotations

from dataclasses import replace

import torch

from ...audit.model.case import Case
from ...audit.model.nested import leaves, map_leaves


def redrawn(case: Case, seed: int, shape: tuple[int, ...] | None = None) -> Case:
    """The case with new values in each floating-point tensor, in the given shape or in the tensors' own ones."""
    generator = torch.Generator().manual_seed(seed)

    def redraw(leaf: object) -> object:
        if not isinstance(leaf, torch.Tensor) or not leaf.dtype.is_floating_point:
            return leaf
        wanted = tuple(leaf.shape) if shape is None else shape
        values = torch.empty(wanted, dtype=torch.float32).normal_(generator=generator).to(leaf.dtype)
        return values.requires_grad_(leaf.requires_grad)

    args, kwargs = map_leaves(redraw, (case.args, case.kwargs))
    return replace(
        case, args=args, kwargs=kwargs, title=f"drawn, shape {'its own' if shape is None else shape}, seed {seed}"
    )


def runs_on_cpu(case: Case) -> bool:
    """Whether the CPU accepts the call; the case's own tensors are not changed."""
    args, kwargs = map_leaves(
        lambda leaf: leaf.detach().clone() if isinstance(leaf, torch.Tensor) else leaf, (case.args, case.kwargs)
    )
    try:
        case.call(*args, **kwargs)
    except Exception:  # whatever an operator raises, it does not accept the call
        return False
    return True


def with_added_dimension(case: Case) -> Case | None:
    """The case with every vector stacked to two rows; None if the CPU does not accept that."""

    def stacked(leaf: object) -> object:
        if not isinstance(leaf, torch.Tensor) or leaf.dim() != 1:
            return leaf
        rows = torch.stack([leaf.detach(), leaf.detach().roll(1)])
        return rows.requires_grad_(leaf.requires_grad)

    args, kwargs = map_leaves(stacked, (case.args, case.kwargs))
    wider = replace(case, args=args, kwargs=kwargs, title="two rows")
    return wider if dimensions_of(wider) >= 2 and runs_on_cpu(wider) else None


def dimensions_of(case: Case) -> int:
    """How many dimensions its largest tensor has."""
    return max((leaf.dim() for leaf in leaves((case.args, case.kwargs)) if isinstance(leaf, torch.Tensor)), default=0)


def shapes_of(case: Case) -> set[tuple[int, ...]]:
    """The shapes of its floating-point tensors."""
    tensors = (leaf for leaf in leaves((case.args, case.kwargs)) if isinstance(leaf, torch.Tensor))
    return {tuple(tensor.shape) for tensor in tensors if tensor.dtype.is_floating_point}
