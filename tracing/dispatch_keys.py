"""Makes a call with the dispatch keys that would be active without a dispatch mode."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch

from .classification import OverloadTraits

_is_excluded: Callable[[Any], bool] = torch._C._dispatch_tls_is_dispatch_key_excluded
_RestoredKeys: Any = torch._C._RestorePythonTLSSnapshot  # type: ignore[attr-defined]
_AUTOCAST_MPS = torch._C.DispatchKey.AutocastMPS  # type: ignore[attr-defined]
_AUTOCAST_CPU = torch._C.DispatchKey.AutocastCPU
# Keys with a higher priority than the mode, which are active inside a kernel without a mode.
_ACTIVE_IN_KERNELS = (
    torch._C.DispatchKey.Conjugate,
    torch._C.DispatchKey.Negative,
    torch._C.DispatchKey.ZeroTensor,
    _AUTOCAST_MPS,
    _AUTOCAST_CPU,
)


def run(
    call: Any, args: tuple[Any, ...], kwargs: dict[str, Any], traits: OverloadTraits | None, is_complex: bool
) -> Any:
    """Make the call. `traits` is None for a call without mps.

    A mode excludes the keys of higher priority. Inside a kernel that changes results if autocast is on or a tensor is a
    lazy conjugate. For such calls these keys are included again, as they are without a mode.
    """
    with _RestoredKeys():
        autocast = not (_is_excluded(_AUTOCAST_MPS) and _is_excluded(_AUTOCAST_CPU))
    if not autocast and not is_complex:
        return call(*args, **kwargs)
    with _active_keys(traits):
        return call(*args, **kwargs)


@contextmanager
def _active_keys(traits: OverloadTraits | None) -> Iterator[None]:
    with _RestoredKeys():
        excluded_before = torch._C._dispatch_tls_local_exclude_set()
    now = torch._C._dispatch_tls_local_exclude_set()
    for key in _ACTIVE_IN_KERNELS:
        casts_itself = key in (_AUTOCAST_MPS, _AUTOCAST_CPU) and traits is not None and traits.autocasts
        if not excluded_before.has(key) and not casts_itself:
            now = now - torch._C.DispatchKeySet(key)
    with torch._C._ForceDispatchKeyGuard(torch._C._dispatch_tls_local_include_set(), now):
        yield
