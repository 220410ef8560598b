"""How long the longest thread of a launch waits for memory, by a slow estimate, and at which size half a second.

Loads and stores are counted on the simulated device, at three sizes of what makes a thread longer.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from typing import Any

# Nanoseconds.
LIMIT = 500_000_000


def main() -> None:
    os.environ["MPSMITH_METAL_MODE"] = "checked"
    from mpsmith.audit.releases.surface.profiles import coverage_profile
    from mpsmith.simulator import metal
    from mpsmith.simulator.device import loading as device

    device.load(coverage_profile("2.0.1"))
    metal.install()
    from mpsmith import kernels

    kernels.enable()
    print("what grows: microseconds of the longest thread at each size (kernel); the size at half a second (simulated)")
    for name, (call, sizes) in _calls().items():
        found = [_longest(call, size) for size in sizes]
        shown = ", ".join(f"{size}: {count // 1000}" for size, (_, count) in zip(sizes, found, strict=True))
        kernel, counts = found[-1][0], [count for _, count in found]
        print(f"{name}: {shown} ({kernel}); {_reached(sizes, counts)}", flush=True)


def _reached(sizes: tuple[int, ...], counts: list[int]) -> str:
    """Where a + b size^power, through three points whose sizes grow by one factor, has the limit."""
    first, second = counts[1] - counts[0], counts[2] - counts[1]
    if min(first, second) <= 0 or second < 1.1 * first:
        return "does not grow"
    power = math.log(second / first) / math.log(sizes[2] / sizes[1])
    each = second / (1 - (sizes[1] / sizes[2]) ** power)
    size = sizes[2] * max((LIMIT - counts[2] + each) / each, 0.0) ** (1 / power)
    return f"grows with the power {power:.2f}; {size:.3g}"


def _longest(call: Callable[[int], Any], size: int) -> tuple[str, int]:
    """The kernel whose thread waits longest in a call, and how long."""
    from mpsmith.kernels.runtime.shader import Shader
    from mpsmith.simulator.metal.compiler import default_compiler
    from mpsmith.simulator.metal.dispatch import runtime_of

    found: list[tuple[int, str]] = []
    usual, runtime = Shader.kernel, runtime_of(default_compiler())

    def kernel(self: Shader, name: str, where: Any) -> Any:
        def counted(*arguments: object, **options: Any) -> None:
            runtime.longest_wait()
            usual(self, name, where)(*arguments, **options)
            found.append((runtime.longest_wait(), name))

        return counted

    Shader.kernel = kernel  # type: ignore[method-assign, assignment]
    try:
        call(size)
    finally:
        Shader.kernel = usual  # type: ignore[method-assign]
    most, name = max(found, default=(0, "no kernel"))
    return name, most


def _calls() -> dict[str, tuple[Callable[[int], Any], tuple[int, ...]]]:
    """A call of each family whose threads have loops as long as the call is large."""
    import torch
    from torch.nn import functional

    aten = torch.ops.aten

    def rand(*shape: int) -> torch.Tensor:
        return torch.rand(*shape, generator=torch.Generator().manual_seed(0)).to("mps")

    def zeros(*shape: int) -> torch.Tensor:
        return torch.zeros(*shape, dtype=torch.int64, device="mps")

    def lower(n: int) -> torch.Tensor:
        return (rand(n, n).tril() + n * torch.eye(n, device="mps")).to(torch.complex64)

    def gradient(function: Callable[[torch.Tensor], torch.Tensor], x: torch.Tensor) -> torch.Tensor:
        x = x.requires_grad_()
        return torch.autograd.grad(function(x).sum(), x)[0]

    rows, few, sizes = (2048, 8192, 32768), (256, 1024, 4096), (16, 32, 64)
    return {
        "adaptive_avg_pool3d, elements of a window": (
            lambda n: aten._adaptive_avg_pool3d(rand(1, 1, n, 1, 1), [1, 1, 1]),
            rows,
        ),
        "adaptive_max_pool3d, elements of a window": (
            lambda n: functional.adaptive_max_pool3d(rand(1, 1, n, 1, 1), 1),
            rows,
        ),
        "adaptive_max_pool3d backward, elements of a window": (
            lambda n: gradient(lambda x: functional.adaptive_max_pool3d(x, 1), rand(1, 1, n, 1, 1)),
            rows,
        ),
        "embedding_renorm, columns": (
            lambda n: torch.embedding_renorm_(rand(2, n), zeros(2), 0.1, 2.0),
            (2**14, 2**16, 2**18),
        ),
        "mode, elements of a row": (lambda n: torch.mode(rand(1, n)), rows),
        "max, elements of a row": (lambda n: aten.max.unary_out(rand(n), out=rand(1)[0]), rows),
        "var, elements of a row": (lambda n: aten.var.correction_out(rand(n), [0], correction=1, out=rand(1)[0]), rows),
        "hash_tensor, elements of a row": (lambda n: torch.hash_tensor(rand(n)), rows),
        "multi_margin_loss, classes": (lambda n: functional.multi_margin_loss(rand(1, n), zeros(1)), rows),
        "multilabel_margin_loss, classes, all of them targets": (
            lambda n: functional.multilabel_margin_loss(rand(1, n), torch.arange(n).view(1, n).to("mps")),
            few,
        ),
        "fractional_max_pool2d, elements of a window": (
            lambda n: functional.fractional_max_pool2d(rand(1, 1, n + 1, 2), (n, 1), output_size=(1, 1)),
            few,
        ),
        "fractional_max_pool3d, elements of a window": (
            lambda n: functional.fractional_max_pool3d(rand(1, 1, n + 1, 2, 2), (n, 1, 1), output_size=(1, 1, 1)),
            few,
        ),
        "upsample_antialias_forward, inputs of an output": (
            lambda n: aten._upsample_lanczos2d_aa(rand(1, 1, n, 2), [1, 1], False),
            few,
        ),
        "segment_reduce, rows of a segment": (
            lambda n: torch.segment_reduce(rand(n, 2), "sum", lengths=torch.tensor([n]).to("mps")),
            few,
        ),
        "segment_reduce backward of a product with a zero, rows of a segment": (
            lambda n: gradient(
                lambda x: torch.segment_reduce(x * 0, "prod", lengths=torch.tensor([n]).to("mps")), rand(n, 1)
            ),
            few,
        ),
        "complex_triangular, rows": (
            lambda n: torch.linalg.solve_triangular(lower(n), lower(n)[:, :1].contiguous(), upper=False),
            few,
        ),
        "int_mm, inner size": (lambda n: torch._int_mm(zeros(17, n).char(), zeros(n, 16).char()), few),
        "pdist, columns": (lambda n: torch.pdist(rand(4, n)), few),
        "matrix_exp, rows": (lambda n: torch.linalg.matrix_exp(rand(n, n)), (40, 80, 160)),
        "ctc_loss, steps": (
            lambda n: functional.ctc_loss(
                rand(n, 1, 4).log_softmax(-1), zeros(1, 8) + 1, torch.tensor([n]), torch.tensor([8])
            ),
            few,
        ),
        "ldl, rows": (lambda n: torch.linalg.ldl_factor_ex(rand(n, n) + rand(n, n).mT), (40, 80, 160)),
        "eig, rows": (lambda n: torch.linalg.eig(rand(n, n)), sizes),
        "eigh, rows": (lambda n: torch.linalg.eigh(rand(n, n) + rand(n, n).mT), (56, 112, 224)),
        "svd, rows": (lambda n: torch.linalg.svd(rand(n, n)), (40, 80, 160)),
        "geqrf, rows": (lambda n: torch.geqrf(rand(n, n)), (72, 144, 288)),
        "put_ in deterministic order, values of one place": (_put_in_order, few),
    }


def _put_in_order(n: int) -> Any:
    import torch

    torch.use_deterministic_algorithms(True)
    try:
        places, values = torch.zeros(n, dtype=torch.int64, device="mps"), torch.ones(n, device="mps")
        return torch.zeros(4, device="mps").put_(places, values, accumulate=True)
    finally:
        torch.use_deterministic_algorithms(False)
