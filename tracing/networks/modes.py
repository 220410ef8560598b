"""One run of a network in a mode, as a program would write it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import torch

from .observation import Mode
from .workload import NetworkWorkload

DEVICE = "mps"
_HALVES = {Mode.float16: torch.float16, Mode.bfloat16: torch.bfloat16}


def run(workload: NetworkWorkload, mode: Mode) -> None:
    """Run it on the device that it is on. Raises whatever it raises."""
    if mode in (Mode.inference, Mode.compile):
        _infer(workload, compiled=mode is Mode.compile)
    else:
        _train(workload, _HALVES.get(mode))


def _infer(workload: NetworkWorkload, *, compiled: bool) -> None:
    model = workload.model.eval()
    if compiled:
        model.forward = torch.compile(model.forward)  # as for `generate`, which calls the module itself
    with torch.no_grad():
        workload.infer(model, *workload.inputs)


def _train(workload: NetworkWorkload, half: torch.dtype | None) -> None:
    """A step with AdamW, with scaled loss and clipped gradients under autocast, as in training recipes."""
    model = workload.model.train()
    parameters = [parameter for parameter in model.parameters() if parameter.requires_grad]
    optimizer = torch.optim.AdamW(parameters, lr=1e-3)
    scaler = torch.amp.GradScaler(DEVICE, enabled=half is torch.float16)
    context: Callable[[], Any] = nullcontext if half is None else lambda: torch.autocast(DEVICE, half)
    with context():
        loss = workload.loss(model, *workload.inputs)
    scaler.scale(loss).backward()  # type: ignore[no-untyped-call]
    scaler.unscale_(optimizer)
    if half is not None:
        torch.nn.utils.clip_grad_norm_(parameters, 1.0)
    scaler.step(optimizer)
    scaler.update()
    optimizer.zero_grad()
