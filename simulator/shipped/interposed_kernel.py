"""The kernel that replaces the simulated device's kernel of an overload, and launches shipped kernels."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Protocol

import torch
from torch import Tensor

from ...errors import one_line
from ..device.launch_counts import count_launched, count_stand_in
from ..device.pause import is_paused
from ..device.wrapped_numbers import wrapped_number
from ..errors import SimulatorError
from ..metal.error_buffer import ErrorBuffer
from .call import Call, host_alias
from .plan import ERROR_BUFFER, BlitCopy, Declined, KernelLaunch, Planner, ReleaseKernels, Step
from .written import Kept, keep, poison

_NUMBERS = (bool, int, float, complex)


class LaunchableKernel(Protocol):
    """A compiled kernel (`AirKernel`)."""

    def prepare(
        self,
        arguments: Mapping[str, object],
        threads: tuple[int, int, int],
        group: tuple[int, int, int],
        threadgroup_memory: Sequence[int] = (),
    ) -> Callable[[], None]:
        """A function that launches the kernel. Raises SimulatorError if arguments do not fit or it does not compile."""


class LaunchableKernels(ReleaseKernels, Protocol):
    """The kernels of a release, which can be run (`AirLibrary`)."""

    def kernel(self, name: str, /) -> LaunchableKernel:
        """The kernel; raises SimulatorError if its module cannot be read."""


class InterposedKernel:
    """Computes calls of an overload with the shipped kernels that `planner` plans, or else with the device's kernel."""

    def __init__(self, operator: Any, overload: str, planner: Planner, library: LaunchableKernels) -> None:
        self._overload, self._planner, self._library = overload, planner, library
        self._stand_in: Callable[..., Any] = torch.library.get_kernel(operator, "MPS").call_boxed
        listed = operator._schema.arguments
        self._names = [a.name for a in listed]
        self._defaults = {a.name: a.default_value for a in listed}
        self._may_be_number = [str(a.type) in ("Tensor", "Optional[Tensor]") for a in listed]
        written = [a for a in listed if a.alias_info is not None and a.alias_info.is_write]
        self._written = {a.name: bool(a.kwarg_only) for a in written}  # whether the old values are ignored (out=)
        self._is_neutral: Callable[..., bool] | None = getattr(planner, "neutral_where", None)
        self._kept_results: tuple[int, ...] = getattr(planner, "keeps_stand_in", ())

    def __call__(self, keyset: Any, *args: Any, **kwargs: Any) -> Any:
        """Run the stand-in, then replace its values by those of shipped kernels, if the planner plans them."""
        positional = [
            wrapped_number(value) if may_be_number and type(value) in _NUMBERS else value
            for value, may_be_number in zip(args, self._may_be_number, strict=False)
        ]
        if is_paused():
            return self._stand_in(keyset, *positional, **kwargs)
        if self._is_neutral is not None and self._is_neutral(*args):
            count_launched(self._overload, ())
            return self._stand_in(keyset, *positional, **kwargs)
        arguments = {**self._defaults, **dict(zip(self._names, args, strict=False)), **kwargs}
        if any(tensor._is_zerotensor() for tensor in _of_device(list(arguments.values()))):
            count_stand_in(self._overload, "zeros without memory, of which torch knows that they are zero")
            return self._stand_in(keyset, *positional, **kwargs)
        kept = [keep(tensor) for name in self._written for tensor in _of_device(arguments[name])]
        try:
            returned = self._stand_in(keyset, *positional, **kwargs)
        except Exception:
            count_launched(self._overload, ())  # a refused call computes no values
            raise
        results = self._results(returned, arguments)
        if results and not any(result.numel() for result in results):
            count_launched(self._overload, ())
            return returned
        # Conventions run below autograd, and modes of the caller do not see their calls.
        with torch._C._AutoDispatchBelowADInplaceOrView(), torch._C.DisableTorchFunction():
            changed, discarded = self._changed_and_discarded(arguments, results, kept)
            stand_in = [keep(old.tensor) for old in changed if old.can_be_put_back]
            try:
                if len(stand_in) < len(changed):
                    raise Declined("the call gave other memory to a tensor that it changes in place")
                for old in changed:
                    old.restore()
                steps = self._planned(arguments, results)
                runs = [self._prepared(step) for step in steps]
            except Declined as declined:
                for values in stand_in:
                    values.restore()
                count_stand_in(self._overload, declined.reason)
                return returned
            count_launched(self._overload, [step.kernel for step in steps if isinstance(step, KernelLaunch)])
            for result in discarded:
                poison(result)
            for run in runs:
                run()
        return returned

    def _results(self, returned: Any, arguments: Mapping[str, Any]) -> list[Tensor]:
        """The device's tensors that the call returned, then written arguments."""
        results = _of_device(returned)
        for name in self._written:
            results += [t for t in _of_device(arguments[name]) if not any(t is result for result in results)]
        return results

    def _planned(self, arguments: Mapping[str, Any], results: Sequence[Tensor]) -> Sequence[Step]:
        aliases = {name: _aliased(value) for name, value in arguments.items()}
        on_host = frozenset(n for n, v in arguments.items() if isinstance(v, Tensor) and v.device.type == "cpu")
        call = Call(self._overload, aliases, tuple(map(host_alias, results)), on_host)
        try:
            return self._planner(call, self._library)
        except Declined:
            raise
        except Exception as error:  # an error of a convention must not look like one of torch
            raise Declined(f"the convention failed: {type(error).__name__}: {one_line(error, 120)}") from error

    def _prepared(self, step: Step) -> Callable[[], object]:
        """A function that runs a step. Kernels are compiled and bound now, before the stand-in's values are lost."""
        if isinstance(step, KernelLaunch):
            try:
                return _prepared_launch(self._library.kernel(step.kernel), step)
            except SimulatorError as error:
                raise Declined(one_line(error)) from error
        target, size = step.target.data_ptr(), step.target.numel() * step.target.element_size()
        if isinstance(step, BlitCopy):
            return partial(ctypes.memmove, target, step.source.data_ptr(), size)
        return partial(ctypes.memset, target, step.byte, size)

    def _changed_and_discarded(
        self, arguments: Mapping[str, Any], results: Sequence[Tensor], kept: Sequence[Kept]
    ) -> tuple[list[Kept], list[Tensor]]:
        """Tensors that the kernel changes, which get their old bytes back, and tensors to poison.

        A result in memory that the call reads, but does not declare as written, is in neither list.
        """
        read = {_storage(t) for t in _of_device([v for n, v in arguments.items() if not self._written.get(n)])}
        outs = {id(t) for name, is_out in self._written.items() if is_out for t in _of_device(arguments[name])}
        changed = [old for old in kept if id(old.tensor) not in outs or _storage(old.tensor) in read]
        left = {id(old.tensor) for old in changed} | {id(results[index]) for index in self._kept_results}
        discarded = [t for t in results if id(t) not in left and (id(t) in outs or _storage(t) not in read)]
        return changed, discarded


def _storage(tensor: Tensor) -> int:
    return tensor.untyped_storage().data_ptr()


def _prepared_launch(kernel: LaunchableKernel, step: KernelLaunch) -> Callable[[], None]:
    reporting = [name for name, value in step.arguments.items() if value is ERROR_BUFFER]
    if not reporting:
        return kernel.prepare(step.arguments, step.threads, step.group, step.threadgroup_memory)
    errors = ErrorBuffer()
    memory = _bytes_at(errors.buffer.address, errors.buffer.size)
    arguments = {**step.arguments, **dict.fromkeys(reporting, memory)}
    run = kernel.prepare(arguments, step.threads, step.group, step.threadgroup_memory)

    def run_and_report() -> None:
        run()
        errors.raise_first()

    return run_and_report


def _bytes_at(address: int, size: int) -> Tensor:
    memory = torch._C._construct_storage_from_data_pointer(address, torch.device("cpu"), size)
    return torch.empty(0, dtype=torch.uint8, device="cpu").set_(memory)


def _of_device(value: Any) -> list[Tensor]:
    """The strided tensors of the device in a value or in a list of values."""
    if isinstance(value, Tensor):
        return [value] if value.is_mps and value.layout is torch.strided else []
    if isinstance(value, (list, tuple)):
        return [tensor for item in value for tensor in _of_device(item)]
    return []


def _aliased(value: Any) -> Any:
    """A value with host aliases instead of the device's strided tensors."""
    if isinstance(value, Tensor):
        return host_alias(value) if value.layout is torch.strided else value
    if isinstance(value, (list, tuple)):
        return [_aliased(item) for item in value]
    return value
