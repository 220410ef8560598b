"""Classifies overloads on mps by their dispatcher registrations.

An overload without an mps kernel is either composite, or torch's backend fallback runs it: it copies the arguments to
the CPU, runs the overload there, and copies the results back. Some overloads are registered to that fallback by name;
the release data list them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from ..audit.answers.measured import host_facts

COPIES = frozenset({"aten::_to_copy", "aten::copy_", "aten::_copy_from", "aten::_copy_from_and_resize"})
_COMPOSITE_KEYS = ("CompositeExplicitAutogradNonFunctional", "CompositeExplicitAutograd", "CompositeImplicitAutograd")
# The host waits for values that a shape or a Python number depends on.
_WAITING_TAGS = ("data_dependent_output", "dynamic_output_shape")

_has_kernel = torch._C._dispatch_has_kernel_for_dispatch_key
_takes_numbers = torch._C._should_allow_numbers_as_tensors


@dataclass
class OverloadTraits:
    """Traits of one overload on mps.

    Attributes:
        overload: `aten::softshrink.out`.
        falls_back: the backend fallback runs it.
        composite: it is made of other operators, each of which has its own traits.
        view: its result shares the memory of an argument; nothing is computed.
        copies: it moves data, perhaps from one device to another.
        waits: the host waits for the values.
        takes_device: it has a device argument.
        autocasts: autocast has a kernel for it, and casts nothing inside it.
        written: positions and names of the arguments that it writes to.
        fresh: positions of results that are not arguments.
        unwrapped: positions of tensors for which torch rejects plain numbers. Inside a composite operator a mode gets
            the number of a wrapped tensor and cannot pass it on.
        number: identifies the overload in the recorder.
    """

    overload: str
    falls_back: bool
    composite: bool
    view: bool
    copies: bool
    waits: bool
    takes_device: bool
    autocasts: bool
    written: tuple[tuple[int, str], ...]
    fresh: tuple[int, ...]
    unwrapped: tuple[int, ...] = ()
    number: int = 0


def traits_of(operator: Any, always_falls_back: frozenset[str]) -> OverloadTraits:
    """The traits of a torch._ops.OpOverload at this moment; `always_falls_back` holds names such as `linalg_svd.U`."""
    schema = operator._schema
    overload: str = f"{schema.name}.{schema.overload_name}" if schema.overload_name else schema.name
    by_name = overload.removeprefix("aten::") in always_falls_back and overload.startswith("aten::")
    # Some take sparse tensors alone.
    native = bool(_has_kernel(overload, "MPS")) or (
        bool(_has_kernel(overload, "SparseMPS")) and not _has_kernel(overload, "CPU")
    )
    composite = not native and any(_has_kernel(overload, key) for key in _COMPOSITE_KEYS)
    falls_back = _is_cpp_registration(overload) if by_name and native else not native and not composite
    aliases = [result.alias_info for result in schema.returns]
    fact = host_facts(torch.__version__).get(overload)
    return OverloadTraits(
        overload=overload,
        falls_back=falls_back,
        composite=composite,
        view=any(alias is not None and not alias.is_write for alias in aliases),
        copies=schema.name in COPIES,
        waits=any(getattr(torch.Tag, tag, None) in operator.tags for tag in _WAITING_TAGS)
        or (fact is not None and fact.in_every_call),
        takes_device=any(argument.name == "device" for argument in schema.arguments),
        autocasts=bool(_has_kernel(overload, "AutocastMPS")),
        written=tuple(
            (position, argument.name)
            for position, argument in enumerate(schema.arguments)
            if argument.alias_info is not None and argument.alias_info.is_write
        ),
        fresh=tuple(position for position, alias in enumerate(aliases) if alias is None),
        unwrapped=() if _takes_numbers(schema.name.partition("::")[2]) else _tensors_of(schema),
    )


def _tensors_of(schema: Any) -> tuple[int, ...]:
    return tuple(
        position for position, argument in enumerate(schema.arguments) if isinstance(argument.type, torch.TensorType)
    )


def _is_cpp_registration(overload: str) -> bool:
    """Whether the mps registration is C++; a kernel written in Python replaces the fallback."""
    lines = torch._C._dispatch_dump(overload).splitlines()
    line = next((line for line in lines if line.startswith("MPS: ")), "")
    return ".py:" not in line and "/dev/null" not in line
