"""Arguments of an overload as plain data: shapes, dtypes and small values, from which tensors are made again."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

# Values up to this many are kept; larger floating tensors are drawn anew from their range.
KEPT_VALUES = 48
LARGEST_OF_INTEGERS = 4096  # their values are kept, since they may be indices
LARGEST = 1 << 16

# The compressed layouts, with the methods that give a tensor's two index tensors.
COMPRESSED = {
    torch.sparse_csr: ("crow_indices", "col_indices"),
    torch.sparse_csc: ("ccol_indices", "row_indices"),
    torch.sparse_bsr: ("crow_indices", "col_indices"),
    torch.sparse_bsc: ("ccol_indices", "row_indices"),
}

Recipe = Any  # JSON


class UnencodableError(Exception):
    """An argument that a recipe cannot hold (a quantised tensor, an object); the call is then not recorded."""


def encode(value: Any) -> Recipe:
    """The argument as JSON. Raises UnencodableError."""
    if isinstance(value, Tensor):
        return _encode_tensor(value)
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else {"float": str(value)}
    if isinstance(value, complex):
        return {"complex": [value.real, value.imag]}
    if isinstance(value, (list, tuple)):
        return [encode(item) for item in value]
    for kind, holder in (("dtype", torch.dtype), ("layout", torch.layout), ("memory_format", torch.memory_format)):
        if isinstance(value, holder):
            return {kind: str(value).removeprefix("torch.")}
    if isinstance(value, torch.device):
        return {"device": "cpu"}
    if isinstance(value, torch.Generator):
        return None
    if isinstance(value, torch.UntypedStorage):
        return {"bytes": list(value)}
    raise UnencodableError(type(value).__name__)


def _encode_tensor(tensor: Tensor) -> Recipe:
    if tensor.layout is torch.sparse_coo:
        return _encode_sparse(tensor)
    if tensor.layout in COMPRESSED:
        return _encode_compressed(tensor)
    if tensor.layout is not torch.strided or tensor.is_quantized or tensor.numel() > LARGEST:
        raise UnencodableError(f"{tensor.layout} of {tensor.numel()} elements")
    tensor = tensor.detach().resolve_conj().resolve_neg()
    recipe: dict[str, Any] = {"shape": list(tensor.shape), "dtype": str(tensor.dtype).removeprefix("torch.")}
    if not tensor.is_contiguous() and torch._debug_has_internal_overlap(tensor) == 0:
        recipe["stride"] = list(tensor.stride())
    if tensor.is_complex():
        if tensor.numel() <= KEPT_VALUES:
            recipe["values"] = [[_rounded(v.real), _rounded(v.imag)] for v in tensor.flatten().tolist()]
    elif tensor.is_floating_point():
        values = tensor.float()
        finite = values[values.isfinite()]
        if tensor.numel() <= KEPT_VALUES:
            recipe["values"] = [_rounded(v) for v in values.flatten().tolist()]
        elif finite.numel():
            recipe["range"] = [_rounded(float(finite.min())), _rounded(float(finite.max()))]
    elif tensor.numel() <= LARGEST_OF_INTEGERS:
        recipe["values"] = tensor.flatten().tolist()
    else:
        raise UnencodableError(f"{tensor.numel()} integers")
    return recipe


def _encode_sparse(tensor: Tensor) -> Recipe:
    plain = tensor.detach()
    return {
        "indices": _encode_tensor(plain._indices()),
        "elements": _encode_tensor(plain._values()),
        "size": list(plain.shape),
        "coalesced": plain.is_coalesced(),
    }


def _encode_compressed(tensor: Tensor) -> Recipe:
    compressed, plain = COMPRESSED[tensor.layout]
    return {
        "compressed": _encode_tensor(getattr(tensor, compressed)()),
        "plain": _encode_tensor(getattr(tensor, plain)()),
        "elements": _encode_tensor(tensor.detach().values()),
        "size": list(tensor.shape),
        "layout": str(tensor.layout).removeprefix("torch."),
    }


def _rounded(value: float) -> float | str:
    return float(f"{value:.4g}") if math.isfinite(value) else str(value)


def decode(recipe: Recipe, dtypes: Mapping[str, str]) -> Any:
    """The argument again; tensors and dtypes whose dtype is in `dtypes` take the one it is mapped to."""
    if isinstance(recipe, list):
        return [decode(item, dtypes) for item in recipe]
    if not isinstance(recipe, dict):
        return torch.device("cpu") if recipe == "cpu" else recipe  # as text it would not follow the tensors
    if "shape" in recipe:
        return _decode_tensor(recipe, dtypes)
    if "compressed" in recipe:
        indices = (decode(recipe["compressed"], {}), decode(recipe["plain"], {}))
        layout = getattr(torch, recipe["layout"])
        return torch.sparse_compressed_tensor(
            *indices, decode(recipe["elements"], dtypes), recipe["size"], layout=layout
        )
    if "elements" in recipe:
        parts = decode(recipe["indices"], {}), decode(recipe["elements"], dtypes)
        return torch.sparse_coo_tensor(*parts, recipe["size"], is_coalesced=recipe["coalesced"])
    ((kind, value),) = recipe.items()
    if kind == "dtype":
        return getattr(torch, dtypes.get(value, value))
    if kind in ("layout", "memory_format"):
        return getattr(torch, value)
    if kind == "device":
        return torch.device(value)
    if kind == "bytes":
        return torch.tensor(value, dtype=torch.uint8).untyped_storage()
    return complex(*value) if kind == "complex" else float(value)


def _decode_tensor(recipe: Mapping[str, Any], dtypes: Mapping[str, str]) -> Tensor:
    dtype: torch.dtype = getattr(torch, dtypes.get(recipe["dtype"], recipe["dtype"]))
    made = _values(recipe).reshape(recipe["shape"]).to(dtype)
    if "stride" not in recipe:
        return made
    strided = torch.empty_strided(recipe["shape"], recipe["stride"], dtype=dtype)
    return strided.copy_(made)


def _values(recipe: Mapping[str, Any]) -> Tensor:
    count = math.prod(recipe["shape"])
    if "values" in recipe:
        values = recipe["values"]
        if values and isinstance(values[0], list):
            return torch.tensor([complex(float(a), float(b)) for a, b in values])
        if recipe["dtype"].startswith(("int", "uint", "bool")):
            return torch.tensor(values, dtype=torch.int64)
        return torch.tensor([float(v) for v in values], dtype=torch.float64)
    if "seed" in recipe:
        return _drawn(recipe, count)
    if "range" in recipe:
        low, high = (float(v) for v in recipe["range"])
        return torch.rand(count, dtype=torch.float64) * (high - low) + low
    if recipe["dtype"].startswith("complex"):
        return torch.randn(count, dtype=torch.complex64)
    return torch.zeros(count)


def _drawn(recipe: Mapping[str, Any], count: int) -> Tensor:
    """Values in the recipe's range, from a generator with the recipe's seed."""
    generator = torch.Generator().manual_seed(recipe["seed"])
    low, high = recipe["range"]
    if recipe["dtype"].startswith(("int", "uint", "bool")):
        return torch.randint(low, high + 1, (count,), generator=generator)
    if recipe["dtype"].startswith("complex"):
        return torch.randn(count, dtype=torch.complex64, generator=generator)
    return torch.rand(count, dtype=torch.float64, generator=generator) * (high - low) + low  # type: ignore[no-any-return]


def with_seeds(call: Mapping[str, Any]) -> dict[str, Any]:
    """The call with a range and a seed in place of the values of each list of dense tensors."""
    count = 0

    def seeded(value: Recipe) -> Recipe:
        nonlocal count
        if not _is_tensor_list(value):
            return value
        count += len(value)
        return _seeded(value, count - len(value))

    args = [seeded(value) for value in call["args"]]
    return {**call, "args": args, "kwargs": {name: seeded(value) for name, value in call["kwargs"].items()}}


def _is_tensor_list(value: Recipe) -> bool:
    return (
        isinstance(value, list)
        and bool(value)
        and all(isinstance(item, dict) and "shape" in item and "stride" not in item for item in value)
    )


def _seeded(tensors: Sequence[Recipe], seed: int) -> list[Recipe]:
    """The recipes with seeds in place of values; all tensors of a dtype have one range."""
    bounds: dict[str, list[float]] = {}
    for tensor in tensors:
        values = tensor.get("range") or tensor.get("values") or []
        numbers = [int(v) if isinstance(v, bool) else v for v in values if isinstance(v, int | float)]
        bounds.setdefault(tensor["dtype"], []).extend(numbers)
    ranges = {dtype: [min(numbers, default=0), max(numbers, default=1)] for dtype, numbers in bounds.items()}
    return [
        {"shape": tensor["shape"], "dtype": tensor["dtype"], "range": ranges[tensor["dtype"]], "seed": seed + position}
        for position, tensor in enumerate(tensors)
    ]


def signature(arguments: Recipe) -> str:
    """A key of a recorded call: shapes, dtypes and plain values, but not the elements of tensors."""
    if isinstance(arguments, dict):
        if "shape" in arguments:
            return f"{arguments['dtype']}{arguments['shape']}"
        return "{" + ",".join(f"{k}:{signature(v)}" for k, v in arguments.items()) + "}"
    if isinstance(arguments, list):
        return "[" + ",".join(map(signature, arguments)) + "]"
    return repr(arguments)
