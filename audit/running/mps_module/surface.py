"""The public names of torch.mps and of related modules in the running torch."""

from __future__ import annotations

import inspect
from types import ModuleType
from typing import Any

import torch

# Modules whose every public name is listed, and classes whose methods are.
MODULES = ("torch.mps", "torch.mps.profiler", "torch.backends.mps", "torch.accelerator")
CLASSES = ("torch.mps.Event",)


def public_names() -> list[str]:
    """Every public function and class, dotted and sorted by module; methods of `CLASSES` after their class."""
    names: list[str] = []
    for module in MODULES:
        namespace = resolve(module)
        for name in _names_of(namespace) if namespace is not None else ():
            names.append(f"{module}.{name}")
            if names[-1] in CLASSES:
                members = vars(getattr(namespace, name))
                names += [f"{module}.{name}.{member}" for member in members if not member.startswith("_")]
    return names


def resolve(name: str) -> Any:
    """The object of a dotted name below torch; None if there is none."""
    value: Any = torch
    for part in name.split(".")[1:]:
        value = getattr(value, part, None)
    return value


def _names_of(module: Any) -> list[str]:
    listed = set(getattr(module, "__all__", ()))
    names = (name for name in dir(module) if not isinstance(getattr(module, name), ModuleType))
    return [name for name in names if name in listed or _is_own(module, name)]


def _is_own(module: Any, name: str) -> bool:
    """Whether a module defines the name itself, rather than importing it."""
    value = getattr(module, name)
    if name.startswith("_"):
        return False
    origin = getattr(value, "__module__", "") or ""
    own = origin == module.__name__ or origin.startswith(f"{module.__name__}.")
    return own and (inspect.isroutine(value) or inspect.isclass(value))
