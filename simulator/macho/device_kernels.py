"""Computes native calls on the simulated device with a release's own host code, in the process of its macOS wheel.

A call that cannot be sent there, or that needs something that the stand-ins lack, runs the device's stand-in, and is
counted with the reason. An error that the release raises is raised here.
"""

from __future__ import annotations

import ctypes
import re
import warnings
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from threading import RLock
from typing import Any

from ..device import kernel_plan
from ..device import loading as device
from ..device.launch_counts import count_launched, count_stand_in
from ..device.pause import is_paused
from ..device.wrapped_numbers import prepare_wrapped_numbers, wrapped_number
from ..errors import KernelFault, MachOError, SimulatorError
from ..upstream.host_work import HostWork, joined
from .process import Computed, HostProcess, OperatorError
from .shared_memory import torch_dtype
from .traces import launched_kernels

# Memory is the simulated device's own, and a tensor of zeros that has none is torch's.
_OF_DEVICE = kernel_plan.IMPLEMENTED_IN_CPP | {
    name
    for name in kernel_plan.ALWAYS_NATIVE
    if name.partition(".")[0] in ("as_strided", "view", "_reshape_alias", "resize_", "set_")
}
_OF_DEVICE |= {"_efficientzerotensor"}
# Composite in the release: its kernel for every device asks the host code of mps.
_COMPOSITE = frozenset({"copy_"})
# What an error says that is not the release's own.
_LACKING = ("the simulated Metal host has no such method", "is not simulated", "are not simulated", " arguments, not ")
# Where a described tensor has its sizes (`shared_memory.tensors`).
_SHAPE = 5
_FEWER = re.compile(r"takes (\d+) arguments, not")
_ERRORS: dict[str, type[Exception]] = {
    error.__name__: error for error in (IndexError, NotImplementedError, TypeError, ValueError)
}
_FAULT = re.compile(r"^shipped kernel (\w+) of torch ")


class WheelKernels:
    """The overloads that a release's process computes for this process, after a call of `install`.

    `simulator.device.launch_counts` counts the kernels that they launch, and the calls that ran the device's stand-in.

    Args:
        start: starts the process; it is called again when a process has ended.
        registered: without namespace, the overloads with an MPS kernel in the release.

    Attributes:
        overloads: without namespace, those that the process computes.
        stood_in: how many calls ran the device's stand-in, by overload and reason.
        completed_calls: how many calls the process computed or refused with an error.
        lock: held by the thread whose call the process computes, until its results are copied.
    """

    def __init__(self, start: Callable[[], HostProcess], registered: Collection[str]) -> None:
        self._start = start
        self._process: HostProcess | None = start()
        self._registered = frozenset(registered)
        self.overloads: frozenset[str] = frozenset()
        self.stood_in: Counter[tuple[str, str]] = Counter()
        self.completed_calls = 0
        self.lock = RLock()
        self._work: dict[str, HostWork] = {}

    def install(self) -> None:
        """Make the process compute native calls. Raises SimulatorError if the simulated device is not loaded."""
        import torch

        profile = device.loaded_profile()
        if profile is None:
            raise SimulatorError("the wheel's host code runs under the simulated mps device, which is not loaded here")
        prepare_wrapped_numbers()
        registrations = torch.library.Library("aten", "IMPL")  # type: ignore[no-untyped-call]
        installed = set()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # kernels are replaced on purpose
            wanted = (self._registered | _COMPOSITE) & set(kernel_plan.plan(profile).native) - _OF_DEVICE
            for overload in sorted(wanted):
                name, _, variant = overload.partition(".")
                operator = getattr(getattr(torch.ops.aten, name), variant or "default")
                if not any(_alias(result) and not result.alias_info.is_write for result in operator._schema.returns):
                    kernel = _Kernel(operator, overload, self)
                    registrations.impl(operator, kernel, "MPS", with_keyset=True, allow_override=True)  # type: ignore[no-untyped-call]
                    installed.add(overload)
        self._registrations = registrations  # lasts as long as this object
        self.overloads = frozenset(installed)

    def compute(self, overload: str, arguments: Sequence[Any], state: Any = None) -> Computed:
        """Compute a call, as `HostProcess.compute`.

        Raises the release's OperatorError, or MachOError if the process cannot compute it.
        """
        if self._process is None:
            self._process = self._start()
        try:
            computed = self._process.compute(f"aten::{overload}", *arguments, state=state)
        except OperatorError as error:
            self.completed_calls += not _is_lacking(error)
            if faulty := _FAULT.findall(str(error)):
                count_launched(overload, faulty)
            raise
        except MachOError:
            if self._process.ended:
                self.close()
            raise
        except BaseException:  # the process and this one no longer agree on whose turn it is
            self.close()
            raise
        self.completed_calls += 1
        count_launched(overload, launched_kernels(computed.recording))
        self._work = joined(self._work, computed.work)
        return computed

    def empty_cache(self) -> None:
        """Empty the process's caches, as `HostProcess.empty_cache`. A process that cannot is ended."""
        if self._process is None:
            return
        try:
            self._process.empty_cache()
        except BaseException:
            self.close()
            raise

    def drain_work(self) -> dict[str, HostWork]:
        """The work of kernels besides encoding commands since the last call of this method."""
        work, self._work = self._work, {}
        return work

    def close(self) -> None:
        """End the process; the next call starts a new one."""
        if self._process is not None:
            self._process.close()
            self._process = None


class _Kernel:
    """Computes calls of one overload."""

    def __init__(self, operator: Any, overload: str, kernels: WheelKernels) -> None:
        import torch

        self._overload, self._kernels = overload, kernels
        self._stand_in: Callable[..., Any] = torch.library.get_kernel(operator, "MPS").call_boxed
        listed = operator._schema.arguments
        self._names = [a.name for a in listed]
        self._defaults = {a.name: a.default_value for a in listed}
        self._written = [a.name for a in listed if a.alias_info is not None and a.alias_info.is_write]
        self._may_be_number = [str(a.type) in ("Tensor", "Optional[Tensor]") for a in listed]
        by_alias = {_alias(a): a.name for a in listed if _alias(a)}
        draws = torch.Tag.nondeterministic_seeded in operator.tags
        self._draws = draws or any("Generator" in str(a.type) for a in listed)
        self._returned = [by_alias.get(_alias(result), "") for result in operator._schema.returns]

    def __call__(self, keyset: Any, *args: Any, **kwargs: Any) -> Any:
        """Let the release compute the call, or the device's stand-in if the release cannot."""
        import torch

        elsewhere = [x for x in args[:2] if self._overload in _COMPOSITE and (x.device.type != "mps" or x.is_sparse)]
        if is_paused() or elsewhere:
            return self._by_stand_in(keyset, args, kwargs)
        arguments = {**self._defaults, **dict(zip(self._names, args, strict=False)), **kwargs}
        with torch._C._AutoDispatchBelowADInplaceOrView(), torch._C.DisableTorchFunction():
            try:
                with self._kernels.lock:
                    return self._taken(self._computed([arguments[name] for name in self._names]), arguments)
            except OperatorError as error:
                if (fewer := _FEWER.search(str(error))) and self._has_defaults_from(int(fewer[1]), arguments):
                    self._names = self._names[: int(fewer[1])]  # an older schema
                    return self(keyset, *args, **kwargs)
                if not _is_lacking(error):
                    classes = _ERRORS | {
                        "LinAlgError": torch.linalg.LinAlgError,  # type: ignore[attr-defined]
                        "AcceleratorError": getattr(torch, "AcceleratorError", RuntimeError),
                    }
                    error_class = KernelFault if _FAULT.match(str(error)) else classes.get(error.kind, RuntimeError)
                    raise error_class(str(error)) from None
                reason = str(error).splitlines()[0]
            except MachOError as error:
                reason = str(error)
        self._kernels.stood_in[self._overload, reason] += 1
        count_stand_in(self._overload, reason)
        return self._by_stand_in(keyset, args, kwargs)

    def _has_defaults_from(self, position: int, arguments: dict[str, Any]) -> bool:
        surplus = self._names[position:]
        return bool(surplus) and all(repr(arguments[name]) == repr(self._defaults[name]) for name in surplus)

    def _computed(self, arguments: list[Any]) -> Computed:
        import torch

        if not self._draws:
            return self._kernels.compute(self._overload, arguments)
        given = next((value for value in arguments if isinstance(value, torch.Generator)), None)
        generator = torch.mps._get_default_mps_generator() if given is None else given
        state = generator.get_state()
        computed = self._kernels.compute(self._overload, arguments, state)
        generator.set_state(state)
        return computed

    def _by_stand_in(self, keyset: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        positional = [
            wrapped_number(value) if may_be_number and isinstance(value, (bool, int, float, complex)) else value
            for value, may_be_number in zip(args, self._may_be_number, strict=False)
        ]
        return self._stand_in(keyset, *positional, **kwargs)

    def _taken(self, computed: Computed, arguments: dict[str, Any]) -> Any:
        """The results as tensors of the device. What the call wrote is already in the arguments' memory."""
        for name, written in zip(self._written, computed.described_written, strict=True):
            _apply_geometry(arguments[name], written)
        for name, value in zip(self._returned, computed.described, strict=True):
            # Host code of median gives its caller other tensors than those it was to write.
            if name and isinstance(value, tuple) and not arguments[name].numel() and 0 not in value[_SHAPE]:
                _apply_geometry(arguments[name], value)
        made: dict[int, Any] = {}
        results = [
            arguments[name] if name else _on_device(value, made)
            for name, value in zip(self._returned, computed.described, strict=True)
        ]
        return results[0] if len(results) == 1 else tuple(results) if results else None


def _is_lacking(error: OperatorError) -> bool:
    return any(text in str(error) for text in _LACKING)


def _apply_geometry(argument: Any, written: Any) -> None:
    """Give the argument the sizes, strides and memory that the call gave it in the other process."""
    if isinstance(argument, (list, tuple)):
        for element, written_element in zip(argument, written, strict=True):
            _apply_geometry(element, written_element)
        return
    if argument is None or argument.device.type != "mps":
        return
    _, address, size, _, offset, shape, stride = written
    here = argument.untyped_storage()
    if here.nbytes() != size:
        argument.set_(_memory_like(address, size), offset, shape, stride)
    elif (offset, *shape, *stride) != (argument.storage_offset(), *argument.size(), *argument.stride()):
        argument.set_(here, offset, shape, stride)


def _on_device(value: Any, made: dict[int, Any]) -> Any:
    """A result as tensors of the device; tensors that share memory in the other process share it here."""
    import torch

    if isinstance(value, list):
        return [_on_device(element, made) for element in value]
    if not isinstance(value, tuple):
        return value
    _, address, size, dtype, offset, shape, stride = value
    memory = made.get(address) if address else None
    if memory is None:
        memory = made[address] = _memory_like(address, size)
    return torch.empty(0, dtype=torch_dtype(dtype), device="mps").set_(memory, offset, shape, stride)


def _memory_like(address: int, size: int) -> Any:
    """Memory of the device with the same bytes."""
    import torch

    copy = torch.empty(size, dtype=torch.uint8, device="mps").untyped_storage()
    if size:
        ctypes.memmove(copy.data_ptr(), address, size)
    return copy


def _alias(value: Any) -> str:
    """The alias set of an argument or result, such as `a` in `Tensor(a!)`; "" if it has none."""
    info = value.alias_info
    return ",".join(sorted(info.before_set)) if info is not None else ""
