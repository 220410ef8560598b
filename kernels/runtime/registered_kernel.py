"""One kernel that is registered under the MPS key of the dispatcher."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from . import dispatcher
from .catalog import Kernel

_FAKES_OVERRIDE = "allow_override" in inspect.signature(torch.library.register_fake).parameters
_TAKES_OVERRIDE = "allow_override" in inspect.signature(torch.library.Library.impl).parameters


@dataclass(frozen=True)
class KernelRegistration:
    """A registered kernel; torch keeps a registration as long as its library exists.

    Attributes:
        kernel: the kernel.
        original: torch's own kernel, for the calls that the kernel does not replace; None if it replaces all.
        functions: the library that holds the kernel.
        fakes: the library of its fake kernels; None if it has none.
    """

    kernel: Kernel
    original: Any
    functions: torch.library.Library
    fakes: torch.library.Library | None

    @classmethod
    def of(cls, kernel: Kernel) -> KernelRegistration:
        """Register a kernel in place of the current one."""
        is_native = kernel.on_cpu is not None and dispatcher.has_mps_kernel(kernel.overload, kernel.key)
        conditional = kernel.applies is not None or is_native
        original = torch.library.get_kernel(kernel.overload, "MPS") if conditional else None
        fakes = _library(kernel) if kernel.fakes else None
        for overload, fake in kernel.fakes:
            if fakes is not None and dispatcher.lacks_fake(overload):
                fakes.impl(overload.removeprefix("aten::"), fake, "Meta")  # type: ignore[no-untyped-call]
            elif _FAKES_OVERRIDE and dispatcher.fake_needs_concrete_sizes(overload):
                torch.library.register_fake(overload, fake, lib=fakes, allow_override=True)
        return cls(kernel, original, _registered(kernel, original), fakes)

    def replaced_by(self, kernel: Kernel) -> KernelRegistration:
        """Replace it by another kernel for the same overload; before torch 2.8 there is briefly none."""
        if not _TAKES_OVERRIDE:
            self.functions._destroy()  # type: ignore[no-untyped-call]
        functions = _registered(kernel, self.original)
        if _TAKES_OVERRIDE:
            self.functions._destroy()  # type: ignore[no-untyped-call]
        return KernelRegistration(kernel, self.original, functions, self.fakes)

    def unregister(self) -> None:
        """Unregister it; the previous kernel becomes active again."""
        self.functions._destroy()  # type: ignore[no-untyped-call]
        if self.fakes is not None:
            self.fakes._destroy()  # type: ignore[no-untyped-call]

    @property
    def is_active(self) -> bool:
        """Whether no other library has registered the overload since."""
        return dispatcher.is_registered_in(__file__, self.kernel.overload, self.kernel.key)


def _library(kernel: Kernel) -> torch.library.Library:
    return torch.library.Library(kernel.library, "IMPL")  # type: ignore[no-untyped-call]


def _registered(kernel: Kernel, original: Any) -> torch.library.Library:
    """A library that holds the kernel."""
    library, name = _library(kernel), kernel.overload.removeprefix(f"{kernel.library}::")
    function, with_keyset = kernel.function, False
    applies = kernel.applies or kernel.on_cpu
    if original is not None and applies is not None:
        function, with_keyset = _conditional(kernel.function, applies, original.call_boxed), True
    options: dict[str, Any] = {"with_keyset": with_keyset}
    if _TAKES_OVERRIDE:
        options["allow_override"] = True
    with warnings.catch_warnings():
        # Replacing torch's CPU fallback is intended.
        warnings.filterwarnings("ignore", message="(?s).*[Oo]verriding a previously registered kernel")
        library.impl(name, function, kernel.key, **options)  # type: ignore[no-untyped-call]
        if kernel.composite:
            # Torch's CPU fallback would hide the called operators from autograd.
            library.impl(name, function, "AutogradMPS", **options)  # type: ignore[no-untyped-call]
    return library


def _conditional(
    function: Callable[..., Any], applies: Callable[..., bool] | frozenset[torch.dtype], original: Callable[..., Any]
) -> Callable[..., Any]:
    """A function that calls the kernel if it applies, and torch's own kernel otherwise."""
    if isinstance(applies, frozenset):

        def choose_by_dtype(keyset: torch.DispatchKeySet, first: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
            if first.dtype in applies:
                return function(first, *args, **kwargs)
            return original(keyset, first, *args, **kwargs)

        return choose_by_dtype

    def choose(keyset: torch.DispatchKeySet, *args: Any, **kwargs: Any) -> Any:
        if applies(*args, **kwargs):
            return function(*args, **kwargs)
        return original(keyset, *args, **kwargs)

    return choose
