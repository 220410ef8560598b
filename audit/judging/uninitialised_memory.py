"""Finds results of the CPU that depend on uninitialised memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext

import torch
from torch import Tensor

from ..model.case import Case
from ..model.nested import leaves
from .execution import Execution, execute
from .transfer import move

UNDEFINED = "the CPU's result depends on uninitialised memory"


def made_from_empty_inputs(case: Case, cpu: Execution) -> bool:
    """Whether a result has elements although an input has none.

    A kernel that loops over no element may leave its result uninitialised. Two such results may agree by chance.
    """
    empty = any(isinstance(leaf, Tensor) and not leaf.numel() for leaf in leaves((case.args, case.kwargs)))
    return empty and not case.uninitialised and any(isinstance(o, Tensor) and o.numel() for o in cpu.outputs)


def reads_uninitialised_memory(case: Case, cpu: Execution, seed: Callable[[], None]) -> bool:
    """Whether the CPU's result depends on uninitialised memory. Then it is not a reference.

    The case runs again while PyTorch fills new memory with NaN and the largest integers. The result is undefined only
    if those appear in a result that had none; other differences may come from a different algorithm. A result that had
    them only because freed memory held them loses them in a run after other bytes were freed.
    """
    filled = _run_again(case, seed, filling=True)
    if filled is None:
        return False
    fills = [
        (_holds_fill(first), _holds_fill(again)) for first, again in zip(cpu.outputs, filled.outputs, strict=False)
    ]
    if any(again and not first for first, again in fills):
        return True
    if not any(first and again for first, again in fills):
        return False
    _free_blocks_like(cpu.outputs)
    fresh = _run_again(case, seed, filling=False)
    return fresh is not None and any(
        _holds_fill(first) and not _holds_fill(again) for first, again in zip(cpu.outputs, fresh.outputs, strict=False)
    )


def _run_again(case: Case, seed: Callable[[], None], filling: bool) -> Execution | None:
    """Run the case on the CPU again, with or without filled memory; None if it raises."""
    # Deterministic algorithms also fill uninitialised memory.
    with deterministic_algorithms(warn_only=True) if filling else nullcontext():
        try:
            seed()
            return execute(case, move(case.args, case.kwargs, "cpu"))
        except Exception:
            return None


@contextmanager
def deterministic_algorithms(warn_only: bool = False) -> Iterator[None]:
    """Use deterministic algorithms inside. torch.use_deterministic_algorithms loads torch.compile (seconds, 100 MB)."""
    enabled = torch.are_deterministic_algorithms_enabled()
    before = torch.is_deterministic_algorithms_warn_only_enabled()
    torch._C._set_deterministic_algorithms(True, warn_only=warn_only)
    try:
        yield
    finally:
        torch._C._set_deterministic_algorithms(enabled, warn_only=before)


def _free_blocks_like(outputs: Iterable[object]) -> None:
    """Write finite numbers to memory of the outputs' sizes and free it, so that the allocator reuses it next."""
    sizes = [output.untyped_storage().nbytes() for output in outputs if isinstance(output, Tensor)]
    blocks = [torch.full((size,), 0x3F, dtype=torch.uint8) for size in sizes if size for _ in range(16)]
    del blocks


def _holds_fill(output: object) -> bool:
    if not isinstance(output, Tensor) or output.layout is not torch.strided or output.dtype is torch.bool:
        return False
    if output.is_floating_point() or output.is_complex():
        return bool(output.isnan().any())
    return bool((output == torch.iinfo(output.dtype).max).any())
