"""What a fallback to the CPU costs on an NVIDIA GPU, and what our kernel gives back: the measurement of the talks.

python -m benchmarks._nvidia_fallback [FOLDER]

A Sequential of Linear and Softshrink layers, with softshrink three ways: copied to the CPU, computed there and copied
back, as torch's fallback of mps does; by our Metal kernel; and by torch's own CUDA operator. FOLDER gets the numbers as
nvidia_fallback.json and a picture, nvidia_fallback.svg.
"""

from __future__ import annotations

import json
import math
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch

_WIDTH, _LAYERS, _LAMBD = 1024, 4, 0.5
_BATCHES = tuple(2**power for power in range(6, 17))
_ROUNDS, _SECONDS = 15, 2.0
_WAYS = ("fallback", "kernel", "cuda")
# Of the picture.
_LEFT, _TOP, _PLOT_WIDTH, _PLOT_HEIGHT = 60, 40, 560, 300


@dataclass(frozen=True)
class Step:
    """Medians in milliseconds of one step of one batch, by what computes softshrink."""

    batch: int
    backward: bool
    fallback: float
    kernel: float
    cuda: float

    @property
    def gain(self) -> float:
        """How many times as fast the step is with our kernel as with the fallback."""
        return self.fallback / self.kernel


def main() -> None:
    from mpsmith.simulator import nvidia

    nvidia.install("cuda")
    gpu = nvidia.default_driver().name
    steps = [_measured(batch, backward) for backward in (False, True) for batch in _BATCHES]
    for step in steps:
        what = "forward and backward" if step.backward else "forward"
        print(
            f"batch {step.batch:6d}, {what}: fallback {step.fallback:9.3f} ms, kernel {step.kernel:8.3f}, "
            f"cuda {step.cuda:8.3f}; {step.gain:6.1f} times as fast"
        )
    print(f"{_LAYERS} times Linear({_WIDTH}, {_WIDTH}) and Softshrink, float32, {gpu}, torch {torch.__version__}")
    if len(sys.argv) > 1:
        folder = Path(sys.argv[1])
        folder.mkdir(parents=True, exist_ok=True)
        told = {"gpu": gpu, "torch": torch.__version__, "steps": [asdict(step) for step in steps]}
        (folder / "nvidia_fallback.json").write_text(json.dumps(told, indent=1))
        (folder / "nvidia_fallback.svg").write_text(picture(steps, gpu), encoding="utf-8")


def _measured(batch: int, backward: bool) -> Step:
    torch.manual_seed(0)
    x = torch.randn(batch, _WIDTH, device="cuda")
    milliseconds = {}
    for way in _WAYS:
        layers = [module for _ in range(_LAYERS) for module in (torch.nn.Linear(_WIDTH, _WIDTH), _Softshrink(way))]
        milliseconds[way] = _milliseconds(torch.nn.Sequential(*layers).to("cuda"), x, backward)
    return Step(batch, backward, **milliseconds)


class _Softshrink(torch.nn.Module):
    def __init__(self, way: str) -> None:
        super().__init__()
        self._function: Callable[..., Any] = {
            "fallback": _Fallback.apply,
            "kernel": _Kernel.apply,
            "cuda": lambda x: torch.nn.functional.softshrink(x, _LAMBD),
        }[way]

    def forward(self, x: torch.Tensor) -> Any:
        return self._function(x)


class _Fallback(torch.autograd.Function):
    """Every tensor argument goes to the CPU and the result comes back, forward and backward."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(x)
        return torch.ops.aten.softshrink(x.cpu(), _LAMBD).to(x.device)  # type: ignore[no-any-return]

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> torch.Tensor:  # type: ignore[override]
        (x,) = ctx.saved_tensors
        return torch.ops.aten.softshrink_backward(gradient.cpu(), x.cpu(), _LAMBD).to(x.device)  # type: ignore[no-any-return]


class _Kernel(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        from mpsmith.kernels.shrink.shrink import softshrink_out

        ctx.save_for_backward(x)
        return softshrink_out(x, _LAMBD, out=torch.empty_like(x))

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> torch.Tensor:  # type: ignore[override]
        from mpsmith.kernels.shrink.shrink import softshrink_backward_grad_input

        (x,) = ctx.saved_tensors
        return softshrink_backward_grad_input(gradient, x, _LAMBD, grad_input=torch.empty_like(x))


def _milliseconds(model: torch.nn.Module, x: torch.Tensor, backward: bool) -> float:
    """The median of steps, each waited for; the first ones, which compile and allocate, do not count."""

    def step() -> None:
        if backward:
            model(x).sum().backward()
        else:
            with torch.no_grad():
                model(x)
        torch.cuda.synchronize()

    for _ in range(2):
        step()
    times: list[float] = []
    while len(times) < 3 or (len(times) < _ROUNDS and sum(times) < _SECONDS):
        begin = time.perf_counter()
        step()
        times.append(time.perf_counter() - begin)
    return statistics.median(times) * 1e3


def picture(steps: Sequence[Step], gpu: str) -> str:
    """The gain against the batch, forward alone and with backward; the line at 5 is what the talks promise."""
    top = max(10.0, *(step.gain for step in steps))
    batches = [math.log2(step.batch) for step in steps]
    low, high = min(batches), max(batches)

    def x(batch: int) -> float:
        return _LEFT + _PLOT_WIDTH * (math.log2(batch) - low) / max(high - low, 1)

    def y(gain: float) -> float:
        return _TOP + _PLOT_HEIGHT * (1 - math.log10(max(gain, 1.0)) / math.log10(top))

    bottom = _TOP + _PLOT_HEIGHT
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_LEFT + _PLOT_WIDTH + 40}" height="{bottom + 60}" '
        'font-family="sans-serif" font-size="12">',
        '<rect width="100%" height="100%" fill="white"/>',
        f'<text x="8" y="20">Fallback / kernel, {_LAYERS} times Linear({_WIDTH}) and Softshrink, {gpu} '
        "(NVIDIA, not Apple)</text>",
        f'<path d="M{_LEFT} {y(5):.0f}H{_LEFT + _PLOT_WIDTH}" stroke="#999" stroke-dasharray="4 3"/>',
        f'<text x="{_LEFT + 4}" y="{y(5) - 4:.0f}" fill="#666">5 times</text>',
    ]
    for gain in (1, 2, 5, 10, 20, 50, 100, 200):
        if gain <= top:
            lines.append(f'<text x="{_LEFT - 6}" y="{y(gain) + 4:.0f}" text-anchor="end">{gain}</text>')
    for batch in sorted({step.batch for step in steps}):
        lines.append(f'<text x="{x(batch):.0f}" y="{bottom + 16}" text-anchor="middle">{batch}</text>')
    lines.append(f'<text x="{_LEFT + _PLOT_WIDTH / 2:.0f}" y="{bottom + 36}" text-anchor="middle">batch</text>')
    for backward, colour, name in ((False, "#4477aa", "forward"), (True, "#cc3311", "forward and backward")):
        chosen = [step for step in steps if step.backward is backward]
        path = " ".join(f"{x(step.batch):.1f},{y(step.gain):.1f}" for step in chosen)
        lines.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
        height = bottom + 52
        lines.append(f'<text x="{_LEFT + (240 if backward else 0)}" y="{height}" fill="{colour}">{name}</text>')
    return "\n".join([*lines, "</svg>", ""])


if __name__ == "__main__":
    main()
