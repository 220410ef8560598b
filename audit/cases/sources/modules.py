"""torch.nn modules as their ModuleInfos build them, in training and in evaluation mode."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from copy import deepcopy
from functools import cached_property
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.modules.lazy import LazyModuleMixin

from ...model.case import Case, CaseSource
from ...model.group import GroupKey
from ...model.selection import Samples
from .torch_testing import without_the_compiler

DTYPES = ("float32", "float16", "bfloat16")


class ModuleSource(CaseSource):
    """Every module of `module_db` that runs on the CPU in a dtype which mps has."""

    name = "modules"
    repeats = True

    def groups(self) -> Iterable[GroupKey]:
        """One group for each module class, mode and dtype."""
        for name in self._modules:
            for dtype in DTYPES:
                for variant in ("train", "eval"):
                    yield GroupKey(self.name, name, variant, dtype, "fallback")

    def cases(self, key: GroupKey, samples: Samples) -> Iterator[Case]:
        """The module's inputs, each with a module built for them; gradients reach inputs and parameters."""
        info = self._modules[key.operator]
        dtype: torch.dtype = getattr(torch, key.dtype)
        training = key.variant == "train"
        inputs = info.module_inputs_func(info, "cpu", dtype, requires_grad=True, training=training)
        for module_input in inputs:
            if module_input.forward_input is None:
                continue
            constructor, forward = module_input.constructor_input, module_input.forward_input
            module = info.module_cls(*constructor.args, **constructor.kwargs).to(dtype).train(training)
            lazy = isinstance(module, LazyModuleMixin)
            if lazy:
                module(*forward.args, **forward.kwargs)  # its first call makes its parameters
            state = {**dict(module.named_parameters()), **dict(module.named_buffers())}
            yield Case(
                ModuleCall(module, {**dict(enumerate(constructor.args)), **constructor.kwargs}, lazy=lazy),
                ({name: tensor.detach().requires_grad_(tensor.requires_grad) for name, tensor in state.items()},),
                {"inputs": forward.args, "keywords": forward.kwargs},
                differentiable=True,
                title=module_input.desc,
            )

    @cached_property
    def _modules(self) -> dict[str, Any]:
        with without_the_compiler():
            from torch.testing._internal.common_modules import module_db

        return {info.name: info for info in module_db if not info.name.startswith("nn.quantized")}


class ModuleCall:
    """Calls a module with parameters and buffers that were moved to some device; the module itself stays as it is.

    Args:
        module: the module.
        built_with: the arguments of its constructor by name or position; they are flags of the case as `flags`.
        lazy: whether its first call has made its parameters.
    """

    def __init__(self, module: nn.Module, built_with: Mapping[int | str, Any], *, lazy: bool = False) -> None:
        self._module = module
        self.built_with = built_with
        self.lazy = lazy
        self.flags = {f"built with {name}": value for name, value in built_with.items()}
        self.__name__ = type(module).__name__

    @property
    def kind(self) -> type[nn.Module]:
        """The module's class."""
        return type(self._module)

    @property
    def training(self) -> bool:
        """Whether the module is in training mode."""
        return self._module.training

    def __call__(self, state: dict[str, Tensor], inputs: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
        """The module's output for parameters and buffers by name, and the inputs of its forward."""
        # A module may keep things of its last call; each device gets its own copy.
        return self.copied()(state, inputs, keywords)

    def copied(self) -> Callable[..., Any]:
        """The same call as a function of a copy of the module, which torch.compile can trace."""
        module = deepcopy(self._module)

        def call(state: dict[str, Tensor], inputs: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
            return torch.func.functional_call(module, state, inputs, keywords)

        return call
