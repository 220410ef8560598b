"""Factorisations that Metal computes: Cholesky (2.13.0's blocked algorithm) and products of Householder reflectors.

The host code is aten/src/ATen/native/BatchLinearAlgebra.cpp, whose stubs are in
aten/src/ATen/native/mps/operations/LinearAlgebra.mm; the order of launches is that of the 2.13.0 binary. Later releases
factorise in panels, which has no convention. In 2.13.0, LU, QR and solves also use MetalPerformanceShaders.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import torch
from torch import Tensor

from ..call import Call
from ..plan import MAX_THREADS_OF_GROUP, Declined, KernelLaunch, Planner, ReleaseKernels, Step, required
from .copies import copied
from .metal_types import metal_name
from .triangles import PLANNERS as TRIANGLES
from .zeroing import zeroed

_BLOCK = 32
_GROUP = (32, 8, 1)


def _cholesky_ex(call: Call, kernels: ReleaseKernels) -> Sequence[Step]:
    factor, info = call.results
    return _factorized(kernels, factor, info, call["self"], call["upper"])


def _cholesky(call: Call, kernels: ReleaseKernels) -> Sequence[Step]:
    source = call["self"]
    info = torch.empty(source.shape[:-2], dtype=torch.int32, device="cpu")
    return _factorized(kernels, call.result, info, source, call["upper"])


def _factorized(kernels: ReleaseKernels, factor: Tensor, info: Tensor, source: Tensor, upper: bool) -> Sequence[Step]:
    """Copy, factorise in place, then set the other triangle to zero."""
    if source.dtype != torch.float32:
        raise Declined(f"no kernel for {str(source.dtype).removeprefix('torch.')}")
    if not factor.mT.is_contiguous():  # factors have columns in memory; other out= tensors get a copy of them
        columns = torch.empty_like(factor.mT, memory_format=torch.contiguous_format).mT
        return [*_factorized(kernels, columns, info, source, upper), copied(kernels, factor, columns)]
    triangle = "triu_" if upper else "tril_"
    in_place = Call(triangle, {"self": factor, "diagonal": 0}, (factor,))
    return [
        copied(kernels, factor, source),
        zeroed(info),
        *_blocks(kernels, factor, info, "U" if upper else "L"),
        *TRIANGLES[triangle](in_place, kernels),
    ]


def _blocks(kernels: ReleaseKernels, factor: Tensor, info: Tensor, side: str) -> list[Step]:
    """For each diagonal block: factorise it, solve for the blocks beside it, and update the remaining matrix."""
    size, batch = factor.shape[-1], prod(factor.shape[:-2])
    width = min(_BLOCK, size)
    count = -(-size // width)
    steps: list[Step] = []
    for block in range(count):
        place = {"A": factor, "N": size, "NB": width, "k": block}
        names = (f"{kernel}{side}" for kernel in ("factorDiagonalBlock", "applyTRSM", "applySYRK"))
        factorize, solve, update = (required(kernels, name) for name in names)
        steps.append(_launch(factorize, {**place, "info": info}, batch, 1))
        rest = count - block - 1
        if rest:
            steps += [_launch(solve, place, batch, rest), _launch(update, place, batch, rest * (rest + 1) // 2)]
    return steps


def _launch(kernel: str, arguments: dict[str, object], across: int, down: int) -> KernelLaunch:
    return KernelLaunch(kernel, arguments, (across * _GROUP[0], down * _GROUP[1], 1), _GROUP)


# ------------------------------------------------------------------------------------------------- reflectors
def _householder_product(call: Call, kernels: ReleaseKernels) -> Sequence[Step]:
    source, tau, result = call["input"], call["tau"].contiguous(), call.result
    if not tau.numel():
        raise Declined("no reflector")
    rows, columns = result.shape[-2:]
    squares = [torch.empty((*result.shape[:-2], rows, rows), dtype=result.dtype, device="cpu") for _ in range(3)]
    params = {
        "num_batch_dims": result.dim() - 2,
        "m": rows,
        "m2": rows * rows,
        "n": columns,
        "k": tau.shape[-1],
        "A_strides": result.stride(),
        "tau_strides": tau.stride(),
        "H_strides": squares[0].stride(),
        "H_sizes": tuple(squares[0].shape),
    }
    arguments = {"A": result, "tau": tau, "params": params}
    arguments |= dict(zip(("H", "H_prod", "H_prod_work"), squares, strict=True))
    name = required(kernels, f"orgqr_{metal_name(result.dtype)}")
    group = min(rows * rows, MAX_THREADS_OF_GROUP)
    threads = group * prod(result.shape[:-2])
    return [copied(kernels, result, source), KernelLaunch(name, arguments, (threads, 1, 1), (group, 1, 1))]


PLANNERS: dict[str, Planner] = {
    **dict.fromkeys(("linalg_cholesky_ex", "linalg_cholesky_ex.L"), _cholesky_ex),
    **dict.fromkeys(("cholesky", "cholesky.out"), _cholesky),
    **dict.fromkeys(("linalg_householder_product", "linalg_householder_product.out"), _householder_product),
}
