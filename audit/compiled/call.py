"""A call that is compiled on the device, and runs as it is on the CPU."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from ..judging.judge import DEVICE
from ..model.case import Case
from ..model.nested import leaves


class CompiledCall:
    """A case whose call is compiled if its inputs are on mps, and runs eagerly on the CPU.

    Args:
        case: the case.
        dynamic: whether all sizes are symbols.
        backend: what compiles the graphs.

    Attributes:
        case: the case that makes the compiled call.
        raised: the last exception of the compiled call.
    """

    def __init__(self, case: Case, *, dynamic: bool, backend: str = "inductor") -> None:
        self._call = case.call
        self._dynamic = dynamic
        self._backend = backend
        self._compiled: Callable[..., Any] | None = None
        self.raised: Exception | None = None
        self.__name__ = getattr(case.call, "__name__", type(case.call).__name__)
        # torch.compile keeps views of inputs; equal outputs may become one, and results are not leaves of autograd.
        self.case = replace(case, call=self, same_memory=False)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The call's result; compiled on the first call with inputs on mps."""
        if not _on_device((args, kwargs)):
            return self._call(*args, **kwargs)
        if self._compiled is None:
            self._compiled = torch.compile(traceable(self._call), backend=self._backend, dynamic=self._dynamic)
        try:
            return self._compiled(*args, **kwargs)
        except Exception as error:
            self.raised = error
            raise


def traceable(call: Callable[..., Any]) -> Callable[..., Any]:
    """The call as a function that Dynamo can follow; a module is copied before, not in the graph."""
    own = getattr(call, "copied", lambda: call)()

    def compiled(*args: Any, **kwargs: Any) -> Any:
        return own(*args, **kwargs)

    return compiled


def _on_device(inputs: Any) -> bool:
    """Whether a call with these inputs runs on mps; without tensors and devices, the default device decides."""
    tensors = [leaf for leaf in leaves(inputs) if isinstance(leaf, Tensor)]
    named = [leaf for leaf in leaves(inputs) if isinstance(leaf, torch.device)]
    if not tensors and not named:
        return torch.get_default_device().type == DEVICE
    return any(tensor.device.type == DEVICE for tensor in tensors) or any(device.type == DEVICE for device in named)
