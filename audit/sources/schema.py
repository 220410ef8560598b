"""Every reachable overload with the arguments that are remembered for it: what no OpInfo reaches is executed too."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from typing import Any

import torch

from ..cases import Case
from ..findings.store import GroupKey
from ..judging.tree import leaves
from ..running.selection import Samples
from ..schema.calls import SchemaCall, arguments_of
from ..schema.memory import Memory
from .opinfo import UNINITIALISED, without_double

# Arguments that operators read on the host whatever the device, by name; "operator/name" where only one does.
HOST_ARGUMENTS = frozenset(
    {
        "scalars",
        "tensor_indices_or_sections",
        "randint_like/high",
        "randint_like/low",
        "_pack_padded_sequence/lengths",
        "_pack_padded_sequence_backward/batch_sizes",
    }
)
# Operators of which a result is on the CPU by definition, and its position; it is compared as numbers.
HOST_RESULTS = {"_pack_padded_sequence": 1}
# Operators whose answer is about the device, or on the CPU by definition.
ABOUT_THE_DEVICE = frozenset({"_to_cpu", "get_device", "_shape_as_tensor", "choose_qparams_optimized"})


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
            called = call if key.operator not in HOST_RESULTS else with_numbers(call, HOST_RESULTS[key.operator])
            case = Case(called, args, kwargs, uninitialised=uninitialised, on_host=call.positions_of(HOST_ARGUMENTS))
            if base in ABOUT_THE_DEVICE:
                case.skipped = "answers with the device, or on the CPU, by definition"
            yield without_double(case)

    @cached_property
    def _memory(self) -> Memory:
        return Memory.load()


def with_numbers(call: SchemaCall, position: int) -> Callable[..., Any]:
    """The call with one of its results, a CPU tensor on every device, as a list of numbers."""

    def answer(*args: Any, **kwargs: Any) -> Any:
        results, written = call(*args, **kwargs)
        numbers = results[position].tolist() if results[position].is_cpu else "not on the CPU"
        return (*results[:position], numbers, *results[position + 1 :]), written

    answer.__name__ = call.__name__
    return answer
