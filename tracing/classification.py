"""What a call of an overload does on mps, from what is registered for it: no warning is read, and nothing simulated.

An overload without a kernel of its own for mps either is made of other operators (composite), or torch's backend
fallback takes it: that copies its arguments to the CPU, runs it there, and copies the results back. Some overloads are
registered to that fallback by name; which, the data of the releases knows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

COPIES = frozenset({"aten::_to_copy", "aten::copy_", "aten::_copy_from", "aten::_copy_from_and_resize"})
_COMPOSITE_KEYS = ("CompositeExplicitAutogradNonFunctional", "CompositeExplicitAutograd", "CompositeImplicitAutograd")
# Where the shape or a Python number depends on values, the host waits for them.
_WAITING_TAGS = ("data_dependent_output", "dynamic_output_shape")

_has_kernel = torch._C._dispatch_has_kernel_for_dispatch_key
_takes_numbers = torch._C._should_allow_numbers_as_tensors


@dataclass
class Conduct:
    """What happens to the calls of one overload on mps.

    Attributes:
        overload: `aten::softshrink.out`.
        falls_back: the backend fallback takes it.
        composite: it is made of other operators, each of which has its own conduct.
        view: its result shares the memory of an argument; nothing is computed.
        copies: it moves data, perhaps from one device to another.
        waits: the host waits for the values.
        takes_device: it has an argument that says on which device to work.
        autocasts: autocast has a kernel of its own for it, and casts nothing inside it.
        written: positions and names of the arguments that it writes to.
        fresh: positions of its results that are no arguments.
        unwrapped: positions of its tensors that torch takes no plain number for. Inside a composite operator a mode is
            given the number of a wrapped one, and cannot hand it on.
        number: what the recorder calls the overload by.
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


def conduct_of(operator: Any, always_falls_back: frozenset[str]) -> Conduct:
    """The conduct of a torch._ops.OpOverload now; `always_falls_back` holds names such as `linalg_svd.U`."""
    schema = operator._schema
    overload: str = f"{schema.name}.{schema.overload_name}" if schema.overload_name else schema.name
    by_name = overload.removeprefix("aten::") in always_falls_back and overload.startswith("aten::")
    native = bool(_has_kernel(overload, "MPS"))
    composite = not native and any(_has_kernel(overload, key) for key in _COMPOSITE_KEYS)
    falls_back = _is_torchs_own(overload) if by_name and native else not native and not composite
    aliases = [result.alias_info for result in schema.returns]
    return Conduct(
        overload=overload,
        falls_back=falls_back,
        composite=composite,
        view=any(alias is not None and not alias.is_write for alias in aliases),
        copies=schema.name in COPIES,
        waits=any(getattr(torch.Tag, tag, None) in operator.tags for tag in _WAITING_TAGS),
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
        place for place, argument in enumerate(schema.arguments) if isinstance(argument.type, torch.TensorType)
    )


def _is_torchs_own(overload: str) -> bool:
    """Whether what is registered for mps is of C++; a kernel written in Python replaces the fallback."""
    lines = torch._C._dispatch_dump(overload).splitlines()
    line = next((line for line in lines if line.startswith("MPS: ")), "")
    return ".py:" not in line and "/dev/null" not in line
