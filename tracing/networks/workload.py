"""The runnable form of a network: a module, its inputs, a step of inference and a loss for training."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_leaves, tree_map

from ...errors import MpsmithError, one_line

SEED = 17
_OWN = __package__.partition(".")[0]


def call(model: nn.Module, *inputs: Any) -> Any:
    """A forward pass."""
    return model(*inputs)


def mean_of_outputs(model: nn.Module, *inputs: Any) -> Tensor:
    """A loss for a network without its own: the mean of its outputs."""
    outputs = [leaf for leaf in _tensors(model(*inputs)) if leaf.is_floating_point() and leaf.requires_grad]
    if not outputs:
        raise MpsmithError("no output of the model depends on its parameters, so there is nothing to train")
    return torch.stack([output.float().mean() for output in outputs]).sum()


@dataclass(frozen=True)
class NetworkWorkload:
    """A network that is ready to run.

    Attributes:
        model: the module, on the CPU at first.
        inputs: what `infer` and `loss` are given beside it: tensors, or lists, tuples and dicts of them.
        infer: one step of inference, by default a forward pass.
        loss: what a training step minimises, by default the mean of what a forward pass gives.
    """

    model: nn.Module
    inputs: tuple[Any, ...] = ()
    infer: Callable[..., Any] = call
    loss: Callable[..., Tensor] = mean_of_outputs

    def to(self, device: str) -> NetworkWorkload:
        """The same with its parameters and inputs on a device."""
        inputs = tree_map(lambda leaf: leaf.to(device) if isinstance(leaf, Tensor) else leaf, self.inputs)
        return replace(self, model=self.model.to(device), inputs=inputs)


def build(builder: str) -> NetworkWorkload:
    """The workload that the function `module:function` makes; the seed makes it the same each time.

    The function returns a NetworkWorkload, a module and a tuple of its inputs, or a module that needs no input.
    Raises MpsmithError if there is no such function or it returns anything else. Errors that it raises itself, such as
    for a missing package, are passed on.
    """
    function = _function(builder)
    torch.manual_seed(SEED)
    built = function()
    if isinstance(built, NetworkWorkload):
        return built
    if isinstance(built, nn.Module):
        return NetworkWorkload(built)
    if isinstance(built, tuple) and len(built) == 2 and isinstance(built[0], nn.Module):
        model, inputs = built
        return NetworkWorkload(model, inputs if isinstance(inputs, tuple) else (inputs,))
    raise MpsmithError(
        f"{builder} returned {type(built).__name__}; return a torch.nn.Module and a tuple of its inputs, "
        "or a mpsmith.tracing.networks.workload.NetworkWorkload"
    )


def _function(builder: str) -> Callable[[], Any]:
    module_name, _, name = builder.partition(":")
    if not module_name or not name.isidentifier():
        raise MpsmithError(f"{builder}: name a function as package.module:function")
    here = str(Path.cwd())
    if here not in sys.path and not module_name.startswith(f"{_OWN}."):
        sys.path.insert(0, here)  # as `python -m` does
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module_name}.".startswith(f"{error.name}."):
            raise
        raise MpsmithError(f"{builder}: {one_line(error)} (run this where Python can import it)") from error
    function = getattr(module, name, None)
    if not callable(function):
        raise MpsmithError(f"{builder}: {module_name} has no function {name}")
    return function  # type: ignore[no-any-return]


def _tensors(value: Any) -> Iterator[Tensor]:
    """The tensors in what a model returns; the outputs of transformers and diffusers are mappings or dataclasses."""
    for leaf in tree_leaves(value):
        if isinstance(leaf, Tensor):
            yield leaf
        elif hasattr(leaf, "__dataclass_fields__"):
            yield from _tensors([getattr(leaf, name) for name in leaf.__dataclass_fields__])
