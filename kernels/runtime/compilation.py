"""Makes torch.compile call a kernel of mpsmith if Inductor's own code for the operator fails.

Inductor decomposes many operators or generates Metal for them, even if they have a kernel in eager mode. Usually that
is an advantage, because it fuses operators. A family lists under EXTERN the operators for which Inductor has no Metal
or generates wrong code. While a kernel of mpsmith is registered for one of them, Inductor calls it on mps like any
extern kernel. Inductor is patched when the first compilation loads it.
"""

from __future__ import annotations

import functools
import re
import sys
from collections.abc import Callable, Iterable
from typing import Any

import torch

from .import_hooks import on_import

_LOWERING = "torch._inductor.lowering"
_TAG = re.compile(r" ?mpsmith\.kernels\([^)]*\)")

# The operators that Inductor calls from now on. Code that is already compiled stays as it is.
_called: set[str] = set()
_changed: set[str] = set()


def call_from_compiled_code(operators: Iterable[str]) -> None:
    """Make Inductor call these operators on mps, such as "aten::special_airy_ai", and generate code for all others."""
    _called.clear()
    _called.update(operators)
    if _called or _LOWERING in sys.modules:
        on_import(_LOWERING, _change_inductor)


def _change_inductor() -> None:
    from torch.compiler import config

    # Part of the key of Inductor's disk caches, because the generated code depends on it. The user's tag stays.
    tag = _TAG.sub("", config.cache_key_tag)
    config.cache_key_tag = f"{tag} mpsmith.kernels({' '.join(sorted(_called))})".strip() if _called else tag
    for operator in sorted(_called - _changed):
        packet = getattr(torch.ops.aten, operator.removeprefix("aten::"), None)
        for name in packet.overloads() if packet is not None else ():
            overload = getattr(packet, name)
            if not overload._schema.is_mutable:  # Inductor supports only operators without side effects
                _change(operator, overload)
        _changed.add(operator)


def _change(operator: str, overload: Any) -> None:
    from torch._inductor import decomposition, lowering

    def is_ours(arguments: Any) -> bool:
        return operator in _called and any(_on_mps(argument) for argument in arguments)

    usual = decomposition.decompositions.get(overload)
    if usual is not None:
        decomposition.decompositions[overload] = _overridden_for(is_ours, usual, lambda *_, **__: NotImplemented)
        decomposition.fast_random_decomps.cache_clear()
    if torch._C.DispatchKey.Autograd in overload.py_kernels:
        _keep_whole_above_autograd(overload, is_ours)
    generated = lowering.lowerings.get(overload)
    called = lowering.fallback_handler(overload, add_to_fallback_set=False)  # type: ignore[no-untyped-call]
    lowering.lowerings[overload] = called if generated is None else _overridden_for(is_ours, generated, called)


def _keep_whole_above_autograd(overload: Any, is_ours: Callable[[Any], bool]) -> None:
    """Prevent that tracing decomposes an operator above autograd, so that torch's autograd calls our kernel."""
    key = torch._C.DispatchKey.Autograd
    usual = overload.py_kernels.pop(key)

    def whole(*arguments: Any, **options: Any) -> Any:
        own = overload.py_kernels.pop(key)
        overload._dispatch_cache.clear()
        try:
            return overload(*arguments, **options)
        finally:
            overload.py_impl(key)(own)

    overload.py_impl(key)(_overridden_for(is_ours, usual, whole))


def _overridden_for(
    is_ours: Callable[[Any], bool], usual: Callable[..., Any], instead: Callable[..., Any]
) -> Callable[..., Any]:
    """A function that calls `instead` for our calls, and `usual` for all others."""

    @functools.wraps(usual)
    def choose(*arguments: Any, **options: Any) -> Any:
        return (instead if is_ours(arguments) else usual)(*arguments, **options)

    return choose


def _on_mps(argument: Any) -> bool:
    """Whether a tensor, or a node of Inductor's graphs, is on mps."""
    device = argument.device if isinstance(argument, torch.Tensor) else getattr(argument, "get_device", lambda: None)()
    return device is not None and device.type == "mps"
