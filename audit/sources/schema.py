"""Every reachable overload with the arguments that are remembered for it: what no OpInfo reaches is executed too."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cached_property

import torch

from ..cases import Case
from ..schema.calls import SchemaCall, arguments_of
from ..schema.memory import Memory
from ..selection import Samples
from ..store import GroupKey
from ..tree import leaves
from .opinfo import UNINITIALISED, without_double

# Arguments that operators read on the host whatever the device, by name.
HOST_ARGUMENTS = frozenset({"scalars", "tensor_indices_or_sections"})


class SchemaSource:
    """The remembered calls of every overload, in each dtype that the CPU accepts."""

    name = "schema"
    slowest: frozenset[str] = frozenset()

    def groups(self) -> Iterable[GroupKey]:
        """One group for each overload and dtype."""
        for overload, remembered in self._memory.overloads.items():
            for dtype in remembered.dtypes:
                yield GroupKey(self.name, overload.removeprefix("aten::"), "", dtype, "fallback")

    def cases(self, key: GroupKey, samples: Samples) -> Iterator[Case]:
        """The remembered calls with their replaceable dtype replaced by the group's."""
        name = f"aten::{key.operator}"
        call = SchemaCall(name)
        base = key.operator.split(".")[0]
        uninitialised = "uninitialised" if base in UNINITIALISED or base.startswith(("empty", "new_empty")) else ""
        for remembered in self._memory.overloads[name].calls:
            args, kwargs = arguments_of(remembered, key.dtype)
            if call.takes_device and not any(isinstance(leaf, torch.Tensor) for leaf in leaves((args, kwargs))):
                kwargs["device"] = torch.device("cpu")  # a factory is asked for the device that is audited
            on_host = call.positions_of(HOST_ARGUMENTS)
            yield without_double(Case(call, args, kwargs, uninitialised=uninitialised, on_host=on_host))

    @cached_property
    def _memory(self) -> Memory:
        return Memory.load()
