"""Finds overloads of a tree whose schema differs in the installed torch, where their kernels cannot be registered."""

from __future__ import annotations

import re

from torchgen.model import FunctionSchema, NativeFunction, NativeFunctionsGroup

from ..metal.includes import torch_include
from .registrations import MpsYaml

_SPACE = re.compile(r"\s")


def changed_schemas(yaml: MpsYaml) -> dict[str, str]:
    """The changed overloads of a tree that have kernels for mps, without namespace, with the installed schema or "".

    All forms of a structured operator count as changed if one of them changed, because they share a kernel.
    """
    with_kernels = {kernel.overload for kernel in yaml.kernels}
    changed: dict[str, str] = {}
    for group in yaml.groups:
        functions = list(group.functions()) if isinstance(group, NativeFunctionsGroup) else [group]
        installed = {str(function.func.name): _installed(function) for function in functions}
        differs = any(_differs(function, installed[str(function.func.name)]) for function in functions)
        if differs or (isinstance(group, NativeFunctionsGroup) and _precomputes_otherwise(group)):
            changed.update({name: schema for name, schema in installed.items() if name in with_kernels})
    return changed


def _installed(function: NativeFunction) -> str:
    import torch

    name = function.func.name
    packet = getattr(torch.ops.aten, str(name.name), None)
    overload = getattr(packet, name.overload_name or "default", None)
    return "" if overload is None else str(overload._schema).removeprefix("aten::")


def _differs(function: NativeFunction, installed: str) -> bool:
    try:
        if not installed:
            return True
        had, wanted = _types(function.func), _types(FunctionSchema.parse(installed))
        # A kernel for whole numbers alone serves symbolic ones: the dispatcher passes their values.
        return had not in (wanted, wanted.replace("SymInt", "int"))
    except Exception:  # torchgen raises assertions and plain exceptions of many types
        return _SPACE.sub("", installed) != _SPACE.sub("", str(function.func))


def _precomputes_otherwise(group: NativeFunctionsGroup) -> bool:
    """Whether only one of the tree and the installed torch gives the kernel computed arguments."""
    include, name = torch_include(), group.out.func.name
    header = include / f"ATen/ops/{name.name.base}_meta.h" if include else None
    if not group.structured or header is None or not header.is_file():
        return False
    structure = (
        f"struct TORCH_API structured_{name.name}{f'_{o}' if (o := group.functional.func.name.overload_name) else ''} "
    )
    own = header.read_text("utf-8").partition(structure)[2].partition("\n};")[0]
    return bool(own) and ("precompute_out" in own) != (group.out.precomputed is not None)


def _types(schema: FunctionSchema) -> str:
    arguments = ", ".join(str(argument.type) for argument in schema.arguments.flat_all)
    return f"{arguments} -> {', '.join(str(result.type) for result in schema.returns)}"
