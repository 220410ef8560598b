"""Makes a call as it would be made without a mode: with the dispatch keys alive that a mode keeps out."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch

from .classification import Conduct

_keeps_out: Callable[[Any], bool] = torch._C._dispatch_tls_is_dispatch_key_excluded
_RestoredKeys: Any = torch._C._RestorePythonTLSSnapshot  # type: ignore[attr-defined]
_AUTOCAST_MPS = torch._C.DispatchKey.AutocastMPS  # type: ignore[attr-defined]
_AUTOCAST_CPU = torch._C.DispatchKey.AutocastCPU
# Keys that stand above the mode, but that are live inside a kernel when there is no mode.
_LIVE_IN_KERNELS = (
    torch._C.DispatchKey.Conjugate,
    torch._C.DispatchKey.Negative,
    torch._C.DispatchKey.ZeroTensor,
    _AUTOCAST_MPS,
    _AUTOCAST_CPU,
)


def run(call: Any, args: tuple[Any, ...], kwargs: dict[str, Any], conduct: Conduct | None, is_complex: bool) -> Any:
    """Make the call. `conduct` is None for one that has nothing to do with mps.

    A mode keeps out the keys that stand above it. Inside a kernel that would change results where autocast is on, or
    where a tensor is a lazy conjugate: for such calls those keys are let in again, as they are without a mode.
    """
    with _RestoredKeys():
        autocast = not (_keeps_out(_AUTOCAST_MPS) and _keeps_out(_AUTOCAST_CPU))
    if not autocast and not is_complex:
        return call(*args, **kwargs)
    with _live_keys(conduct):
        return call(*args, **kwargs)


@contextmanager
def _live_keys(conduct: Conduct | None) -> Iterator[None]:
    with _RestoredKeys():
        kept_out_before = torch._C._dispatch_tls_local_exclude_set()
    now = torch._C._dispatch_tls_local_exclude_set()
    for key in _LIVE_IN_KERNELS:
        casts_itself = key in (_AUTOCAST_MPS, _AUTOCAST_CPU) and conduct is not None and conduct.autocasts
        if not kept_out_before.has(key) and not casts_itself:
            now = now - torch._C.DispatchKeySet(key)
    with torch._C._ForceDispatchKeyGuard(torch._C._dispatch_tls_local_include_set(), now):
        yield
