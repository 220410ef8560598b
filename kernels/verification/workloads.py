"""Inputs of a size that is worth timing, one call for each family."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

_aten = torch.ops.aten
_functional = torch.nn.functional


@dataclass(frozen=True)
class Workload:
    """One call to time.

    Attributes:
        operator: the overload that it is about, `aten::mode`.
        call: called with what `arguments` returned.
        arguments: from a number of elements, tensors on the CPU; the largest tensor has about so many.
    """

    operator: str
    call: Callable[..., Any]
    arguments: Callable[[int], tuple[Any, ...]]


def _one(n: int) -> tuple[torch.Tensor]:
    return (torch.randn(n),)


def _rows(n: int) -> tuple[int, int]:
    """Rows and columns of about n elements, rows of at most 1,024."""
    columns = min(n, 1024)
    return max(1, n // columns), columns


def _targets(n: int) -> tuple[torch.Tensor, torch.Tensor]:
    rows, columns = _rows(n)
    return torch.randn(rows, columns), torch.randint(0, columns, (rows,))


def _labels(n: int) -> tuple[torch.Tensor, torch.Tensor]:
    rows, columns = _rows(n)
    labels = torch.full((rows, columns), -1)
    labels[:, : min(4, columns)] = torch.arange(min(4, columns))
    return torch.randn(rows, columns), labels


def _volume(n: int) -> tuple[torch.Tensor]:
    side = max(4, round((n / 16) ** (1 / 3)))
    return (torch.randn(1, 16, side, side, side),)


def _image(n: int) -> tuple[torch.Tensor, torch.Tensor]:
    side = max(8, math.isqrt(n // 16))
    return torch.randn(1, 16, side, side), torch.rand(1, 16, 2)


def _points(n: int) -> tuple[torch.Tensor]:
    """So many points of 32 coordinates that their distances are n."""
    return (torch.randn(max(2, math.isqrt(2 * n)), 32),)


def _places(n: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    return torch.randn(n), torch.randperm(n), torch.randn(n)


def _adagrad_state(n: int) -> tuple[list[torch.Tensor], ...]:
    return [torch.randn(n)], [torch.randn(n)], [torch.rand(n)], [torch.ones(())]


def _adagrad(parameters: Any, gradients: Any, sums: Any, steps: Any) -> None:
    torch._fused_adagrad_(
        parameters, gradients, sums, steps, lr=0.1, lr_decay=0.0, weight_decay=0.0, eps=1e-8, maximize=False
    )


def _matrices(n: int) -> tuple[torch.Tensor]:
    a = torch.randn(max(1, n // 1024), 32, 32)
    return (a + a.mT,)


def _half_size(x: torch.Tensor, samples: torch.Tensor) -> torch.Tensor:
    size = (x.shape[-2] // 2, x.shape[-1] // 2)
    return _functional.fractional_max_pool2d(x, 2, size, _random_samples=samples)


WORKLOADS: dict[str, Workload] = {
    "adaptive_avg_pool3d": Workload(
        "aten::_adaptive_avg_pool3d", lambda x: _functional.adaptive_avg_pool3d(x, 4), _volume
    ),
    "adaptive_max_pool3d": Workload(
        "aten::adaptive_max_pool3d.out", lambda x: _functional.adaptive_max_pool3d(x, 4), _volume
    ),
    "airy": Workload("aten::special_airy_ai.out", torch.special.airy_ai, _one),
    "embedding_renorm": Workload(
        "aten::embedding_renorm_",
        lambda w, i: torch.embedding_renorm_(w, i, 1.0, 2.0),
        lambda n: (torch.randn(_rows(n)), torch.arange(_rows(n)[0])),
    ),
    "extremum": Workload(
        "aten::max.unary_out", lambda x: torch.max(x, out=torch.empty((), device=x.device, dtype=x.dtype)), _one
    ),
    "fake_quantize": Workload(
        "aten::fake_quantize_per_tensor_affine_cachemask",
        lambda x: torch.fake_quantize_per_tensor_affine(x, 0.1, 0, -128, 127),
        _one,
    ),
    "fractional_max_pool2d": Workload("aten::fractional_max_pool2d.output", _half_size, _image),
    "fused_adagrad": Workload("aten::_fused_adagrad_", _adagrad, _adagrad_state),
    "heaviside": Workload("aten::heaviside.out", torch.heaviside, lambda n: (torch.randn(n), torch.randn(n))),
    "ldl": Workload("aten::linalg_ldl_factor_ex.out", torch.linalg.ldl_factor_ex, _matrices),
    "logit": Workload("aten::logit_", lambda x: x.logit_(1e-6), lambda n: (torch.rand(n),)),
    "mode": Workload("aten::mode", lambda x: torch.mode(x, -1), lambda n: (torch.randn(_rows(n)).round(),)),
    "multi_margin_loss": Workload("aten::multi_margin_loss", _functional.multi_margin_loss, _targets),
    "multilabel_margin_loss": Workload(
        "aten::multilabel_margin_loss_forward", _functional.multilabel_margin_loss, _labels
    ),
    "normal_distribution": Workload("aten::special_ndtri.out", torch.special.ndtri, lambda n: (torch.rand(n),)),
    "pdist": Workload("aten::_pdist_forward", _functional.pdist, _points),
    "put_take": Workload("aten::put_", torch.Tensor.put_, _places),
    "rrelu": Workload("aten::rrelu_with_noise", lambda x: _functional.rrelu(x, training=True), _one),
    "shrink": Workload("aten::softshrink.out", _functional.softshrink, _one),
}
