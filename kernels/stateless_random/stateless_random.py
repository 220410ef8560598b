"""Random numbers that depend only on a key (`torch.func._random`): the same on mps as on the CPU and on CUDA.

Torch has the operators since 2.14. The numbers follow the sources of 2.15.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache

import torch

from ..runtime.layout import launch_elements
from ..runtime.operands import require_supported
from ..runtime.outputs import contiguous_output, finish, refuse_internal_overlap
from ..runtime.shader import METAL_TYPES, Shader

_shader = Shader(__file__)
_BLOCK_BYTES = 16  # of one call of Philox; an element takes at least 4 bytes
# From this range on that does not divide 2^32, draws of 32 bits are too biased to the first numbers.
_MOST_BIASED_RANGE = 2**28
_WHOLE = frozenset(
    {
        *(torch.uint8, torch.uint16, torch.uint32, torch.uint64),
        *(torch.int8, torch.int16, torch.int32, torch.int64),
    }
)


def philox_key_split(key: torch.Tensor, num_splits: int) -> torch.Tensor:
    """`_philox_key_split`: `num_splits` new keys for each key, in a new first dimension."""
    _check_key(key, "_philox_key_split", "(*batch, 2)")
    if num_splits <= 0:
        raise RuntimeError(f"_philox_key_split: num_splits must be positive, got {num_splits}")
    return _derived(key, (num_splits, *key.shape), num_splits, torch.zeros(1, dtype=torch.int64, device=key.device))


def philox_key_fold_in(key: torch.Tensor, data: int) -> torch.Tensor:
    """`_philox_key_fold_in`: the key number `data` of a split."""
    _check_key(key, "_philox_key_fold_in", "(*batch, 2)")
    return _derived(key, key.shape, 1, torch.full((1,), data, dtype=torch.int64, device=key.device))


def philox_key_fold_in_tensor(key: torch.Tensor, data: torch.Tensor) -> torch.Tensor:
    """`_philox_key_fold_in.Tensor`: `data` stays on the device."""
    _check_key(key, "_philox_key_fold_in", "(*batch, 2)")
    if data.dtype != torch.uint64:
        raise RuntimeError(f"_philox_key_fold_in: data must have dtype uint64, got {data.dtype}")
    if data.numel() != 1:
        raise RuntimeError(f"_philox_key_fold_in: data must be a single value, got {data.numel()} elements")
    return _derived(key, key.shape, 1, data.to(key.device))


def philox_uniform_(self: torch.Tensor, key: torch.Tensor, low: float = 0.0, high: float = 1.0) -> torch.Tensor:
    """`_philox_uniform_`: from `low` up to `high`, both rounded to the dtype first."""
    _check_drawn(self, key, "_philox_uniform_")
    _draw(self, key, f"uniform_{METAL_TYPES[self.dtype]}", _rounded(low, high, self.dtype))
    return self


@lru_cache(maxsize=64)
def _rounded(low: float, high: float, dtype: torch.dtype) -> list[float]:
    """The lower end and the distance to the upper one, rounded to the dtype."""
    ends = torch.tensor([low, high], dtype=dtype)
    return [float(ends[0]), float(ends[1] - ends[0])]


def philox_normal_(self: torch.Tensor, key: torch.Tensor, mean: float = 0.0, std: float = 1.0) -> torch.Tensor:
    """`_philox_normal_`, computed in float32."""
    _check_drawn(self, key, "_philox_normal_")
    _draw(self, key, f"normal_{METAL_TYPES[self.dtype]}", [float(mean), float(std)])
    return self


def philox_randint_(
    self: torch.Tensor, key: torch.Tensor, low: int | None = None, high: int | None = None
) -> torch.Tensor:
    """`_philox_randint_`: from `low` up to, but not including, `high`; None is the dtype's limit."""
    if self.dtype not in _WHOLE:
        raise RuntimeError(f"_philox_randint_: self must have an integer dtype, got {self.dtype}")
    _check_output(self, key, "_philox_randint_")
    limits = torch.iinfo(self.dtype)
    lowest, count = (limits.min if low is None else low), 0
    if not (lowest == limits.min and high is None):
        count = _range(self.dtype, lowest, limits.max + 1 if high is None else high)
    _draw(self, key, f"whole_{self.element_size()}", [_signed(lowest), _signed(count)])
    return self


def _range(dtype: torch.dtype, low: int, high: int) -> int:
    """The size of the range, modulo the number of values of a draw."""
    drawn = 2**64 if dtype.itemsize == 8 else 2**32
    count = (high - low) % drawn
    if count == 0:
        raise RuntimeError("_philox_randint_: [low, high) must be non-empty; pass high=None for the dtype's full range")
    if drawn == 2**32 and drawn % count and count >= _MOST_BIASED_RANGE:
        raise RuntimeError(
            f"_philox_randint_: range (high - low = {count}) does not divide 2^32 evenly and is too large for the "
            f"output dtype {dtype}: some numbers would come up noticeably more often. Take a power of two, or int64."
        )
    return count


def _signed(number: int) -> int:
    """The signed number with the same 64 bits."""
    return (number + 2**63) % 2**64 - 2**63


def _check_key(key: torch.Tensor, operator: str, shapes: str) -> None:
    if key.dim() < 1 or key.shape[-1] != 2:
        raise RuntimeError(f"{operator}: key must have shape {shapes}, got shape {list(key.shape)}")
    if key.dtype != torch.uint64:
        raise RuntimeError(f"{operator}: key must have dtype uint64, got {key.dtype}")


def _check_drawn(x: torch.Tensor, key: torch.Tensor, operator: str) -> None:
    if not x.is_floating_point():
        raise RuntimeError(f"{operator}: self must be a floating point tensor, got {x.dtype}")
    _check_output(x, key, operator)
    require_supported(x, operator)


def _check_output(x: torch.Tensor, key: torch.Tensor, operator: str) -> None:
    if key.device != x.device:
        raise RuntimeError(f"{operator}: self and key must be on the same device, got {x.device} and {key.device}")
    _check_key(key, operator, "(2,) or (*batch, 2)")
    if key.dim() == 1:
        return
    if key.dim() != x.dim() + 1:
        raise RuntimeError(
            f"{operator}: batched key must have ndim == output ndim + 1, got key shape {list(key.shape)} with output "
            f"shape {list(x.shape)}"
        )
    if any(keys not in (1, size) for keys, size in zip(key.shape, x.shape, strict=False)):
        raise RuntimeError(
            f"{operator}: key batch shape {list(key.shape[:-1])} is not broadcastable with output shape {list(x.shape)}"
        )


def _derived(key: torch.Tensor, shape: Sequence[int], splits: int, first: torch.Tensor) -> torch.Tensor:
    """New keys: for each key the splits from number `first` on. `first` is one number on the device."""
    # 64-bit words are moved as int64, which every release copies on mps.
    words = torch.empty(tuple(shape), dtype=torch.int64, device=key.device)
    keys = key.view(torch.int64).contiguous()
    if words.numel():
        sizes = [splits, keys.numel() // 2]
        kernel = _shader.kernel("derive_keys", key.device)
        launch_elements(kernel, words.numel() // 2, words, keys, first, sizes)
    return words.view(torch.uint64)


def _draw(out: torch.Tensor, key: torch.Tensor, name: str, limits: Sequence[float] | Sequence[int]) -> None:
    """Fill `out`. A key draws for all elements to which its trailing dimensions of size 1 are broadcast."""
    refuse_internal_overlap(out)
    if not out.numel():
        return
    shared = out.dim() if key.dim() == 1 else _trailing_ones(key.shape[:-1])
    apart = out.shape[: out.dim() - shared]
    keys = key.view(torch.int64)
    if key.dim() > 1:
        keys = keys.flatten(len(apart), -1).expand(*apart, 2)
    elements = math.prod(out.shape[len(apart) :])
    each = _BLOCK_BYTES // max(4, out.element_size())
    sizes = [math.prod(apart), elements, -(-elements // each)]
    values = contiguous_output(out)
    kernel = _shader.kernel(name, out.device)
    launch_elements(kernel, sizes[0] * sizes[2], values, keys.contiguous(), list(limits), sizes)
    finish(out, values)


def _trailing_ones(shape: Sequence[int]) -> int:
    """The number of trailing dimensions of size 1."""
    return next((at for at, size in enumerate(reversed(shape)) if size != 1), len(shape))


KERNELS = (
    ("aten::_philox_key_split", philox_key_split),
    ("aten::_philox_key_fold_in", philox_key_fold_in),
    ("aten::_philox_key_fold_in.Tensor", philox_key_fold_in_tensor),
    ("aten::_philox_uniform_", philox_uniform_),
    ("aten::_philox_normal_", philox_normal_),
    ("aten::_philox_randint_", philox_randint_),
)
