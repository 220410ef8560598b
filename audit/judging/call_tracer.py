"""Records which overloads a call goes through, by the profiler hooks of the dispatcher."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import torch
from torch import Tensor
from torch._C._profiler import _ExperimentalConfig
from torch.autograd.profiler import profile

from ..model.case import Case
from ..model.nested import leaves

HANDED_TO_CPU = "aten::_to_cpu"
# The CPU multiplies half-precision matrices of so many elements in a loop, in several calls each. The profiler keeps
# two kilobytes a call.
LEAST_MATRIX_ELEMENTS = 64
MOST_MATRICES = 4_096


def is_traceable(case: Case) -> bool:
    """Whether a trace of the case fits into memory; one of matrix_exp of 5,000 matrices takes a gigabyte."""
    return not any(isinstance(leaf, Tensor) and _has_many_matrices(leaf) for leaf in leaves((case.args, case.kwargs)))


def _has_many_matrices(tensor: Tensor) -> bool:
    size = tensor.shape[-2:].numel() if tensor.dim() > 2 and tensor.dtype in (torch.float16, torch.bfloat16) else 0
    return size >= LEAST_MATRIX_ELEMENTS and tensor.numel() > MOST_MATRICES * size


@dataclass
class CallTracer:
    """The overloads seen so far.

    Attributes:
        overloads: the overloads called ("aten::add.Tensor"); True for those that the user's own code called.
        sent_to_cpu: the overloads that, in the last context watched, handed their arguments to the CPU. torch's CPU
            fallback does so through `aten::_to_cpu`, whether or not it warns.
    """

    overloads: dict[str, bool] = field(default_factory=dict)
    sent_to_cpu: list[str] = field(default_factory=list)

    def add(self, overload: str, outermost: bool) -> None:
        """Record one call."""
        self.overloads[overload] = self.overloads.get(overload, False) or outermost

    @contextmanager
    def tracing(self, forward: bool) -> Iterator[None]:
        """Record the calls made in this context; in backward nothing is called by the user's own code."""
        config = _ExperimentalConfig(capture_overload_names=True)
        profiler = profile(use_cpu=True, use_kineto=True, experimental_config=config)
        try:
            with profiler:
                yield
        finally:
            self._collect(profiler, forward)

    def _collect(self, profiler: profile, forward: bool) -> None:
        self.sent_to_cpu = []
        results = profiler.kineto_results
        if results is None:
            return
        until = -1
        callers: list[tuple[int, str]] = []  # the calls that are not over yet: when each ends, and its overload
        for event in sorted(results.events(), key=lambda e: (e.start_ns(), -e.duration_ns())):
            name: str = event.name()
            if "::" not in name or " " in name or name.startswith("torch::"):
                continue  # autograd nodes and profiler marks, not operators
            end = event.start_ns() + event.duration_ns()
            outermost = event.start_ns() >= until
            if outermost:
                until = end
            overload: str = event.overload_name()
            full = f"{name}.{overload}" if overload else name
            self.add(full, forward and outermost)
            while callers and callers[-1][0] < end:
                callers.pop()
            if name == HANDED_TO_CPU and callers:
                self.sent_to_cpu.append(callers[-1][1])
            callers.append((end, full))
