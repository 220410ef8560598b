"""The recorded calls of every reachable overload: what no OpInfo reaches is executed too.

The overloads of imported packages are like any other. Their calls are searched when they are first audited.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from typing import Any

import torch

from ....errors import one_line
from ....registry.torch_release import public_version
from ...model.case import UNINITIALISED, Case, CaseSource
from ...model.group import GroupKey
from ...model.nested import leaves
from ...model.selection import Samples
from ..calls.cpu_kernels import register
from ..calls.invocation import SchemaCall, arguments_of, fingerprint
from ..calls.package_operators import package_calls
from ..calls.recorded_calls import RecordedCalls
from .case_tensors import call_on_cpu
from .opinfo import without_double

# Arguments that operators read on the host whatever the device, by name; "operator/name" where only one does.
HOST_ARGUMENTS = frozenset(
    {
        *("scalars", "tensor_indices_or_sections", "randint_like/high", "randint_like/low"),
        *("_pack_padded_sequence/lengths", "_pack_padded_sequence_backward/batch_sizes"),
        *("_pad_packed_sequence/batch_sizes", "lstm/batch_sizes", "gru/batch_sizes", "rnn_tanh/batch_sizes"),
        "rnn_relu/batch_sizes",
    }
)
# Operators of which a result is on the CPU by definition, and its position; it is compared as numbers.
HOST_RESULTS = {"_pack_padded_sequence": 1, "_pad_packed_sequence": 1, "_rowwise_prune": 1}
# Operators whose answer is about the device, or on the CPU by definition.
ABOUT_THE_DEVICE = frozenset({"_to_cpu", "choose_qparams_optimized"})


class SchemaSource(CaseSource):
    """The recorded calls of every overload, in each dtype that the CPU accepts.

    Args:
        recorded: the recorded calls; None for the committed ones.
        packages: the imported packages that define operators.
        foreign: the overloads that importing those defined.
    """

    name = "schema"

    def __init__(
        self, recorded: RecordedCalls | None = None, packages: Sequence[str] = (), foreign: Sequence[str] = ()
    ) -> None:
        self._given = recorded
        self._packages = packages
        self._foreign = foreign

    def groups(self) -> Iterable[GroupKey]:
        """One group for each overload and dtype."""
        return self._keys

    @cached_property
    def _keys(self) -> tuple[GroupKey, ...]:
        """The groups; a score of derived sources ask for them."""
        return tuple(
            GroupKey(self.name, overload.removeprefix("aten::"), "", dtype, "fallback")
            for overload, recorded in self._recorded.overloads.items()
            for dtype in recorded.dtypes
        )

    def cases(self, key: GroupKey, samples: Samples) -> Iterator[Case]:
        """The recorded calls with their replaceable dtype replaced by the group's."""
        name = key.operator if "::" in key.operator else f"aten::{key.operator}"
        call = SchemaCall(name)
        base = key.operator.split(".")[0]
        uninitialised = "uninitialised" if base in UNINITIALISED or base.startswith(("empty", "new_empty")) else ""
        recorded = self._recorded.overloads[name]
        for accepted in recorded.accepted(key.dtype):
            args, kwargs = arguments_of(accepted, key.dtype)
            if call.takes_device and not any(isinstance(leaf, torch.Tensor) for leaf in leaves((args, kwargs))):
                kwargs["device"] = torch.device("cpu")  # a factory is asked for the device that is audited
            called = _comparable(key.operator, call)
            case = Case(called, args, kwargs, uninitialised=uninitialised, on_host=call.positions_of(HOST_ARGUMENTS))
            case.errors_count = recorded.refused
            case.elementwise = call.is_pointwise
            if base in ABOUT_THE_DEVICE:
                case.skipped = "answers with the device, or on the CPU, by definition"
            elif self._of_another_torch and not recorded.refused:
                case.skipped = self._refusal(case)
            yield without_double(case)

    @cached_property
    def _recorded(self) -> RecordedCalls:
        register()  # the CPU kernels that some of the recorded calls need
        recorded = self._given or RecordedCalls.load()
        if recorded.torch != installed_release():
            recorded = recorded.fitting(fingerprint)
        if self._foreign:
            calls = package_calls(self._foreign, self._packages)
            recorded = RecordedCalls(recorded.torch, {**recorded.overloads, **calls.overloads})
        return recorded

    @cached_property
    def _of_another_torch(self) -> bool:
        return self._recorded.torch != installed_release()

    def _refusal(self, case: Case) -> str:
        """Why a call that was found with another torch is left out, or "" if this torch's CPU takes it too."""
        try:
            call_on_cpu(case)
        except Exception as error:
            recorded_with = f"recorded with torch {self._recorded.torch}; the CPU of this torch refuses it"
            return f"{recorded_with}: {one_line(error)} (search again: python -m mpsmith.audit.cases.argument_search)"
        return ""


def installed_release() -> str:
    """The version of the installed torch without what follows a plus."""
    return public_version(torch.__version__)


def _comparable(operator: str, call: SchemaCall) -> Callable[..., Any]:
    """The call; where its answer is about the device, in words that are the same for every device."""
    if operator in HOST_RESULTS:
        return with_numbers(call, HOST_RESULTS[operator])
    return IN_WORDS[operator](call) if operator in IN_WORDS else call


def own_index(call: SchemaCall) -> Callable[..., Any]:
    """`get_device`: whether the index is that of the tensor's device; the CPU has none, which counts as -1."""

    def answer(tensor: torch.Tensor) -> Any:
        index, _ = call(tensor)
        return index == (-1 if tensor.device.index is None else tensor.device.index)

    return answer


def shape_in_numbers(call: SchemaCall) -> Callable[..., Any]:
    """`_shape_as_tensor`: the tensor is on the CPU on every device."""

    def answer(tensor: torch.Tensor) -> Any:
        shape, _ = call(tensor)
        return shape.tolist() if shape.is_cpu else "not on the CPU"

    return answer


IN_WORDS: dict[str, Callable[[SchemaCall], Callable[..., Any]]] = {
    "get_device": own_index,
    "_shape_as_tensor": shape_in_numbers,
}


def with_numbers(call: SchemaCall, position: int) -> Callable[..., Any]:
    """The call with one of its results, a CPU tensor on every device, as a list of numbers."""

    def answer(*args: Any, **kwargs: Any) -> Any:
        results, written = call(*args, **kwargs)
        numbers = results[position].tolist() if results[position].is_cpu else "not on the CPU"
        return (*results[:position], numbers, *results[position + 1 :]), written

    answer.__name__ = call.__name__
    return answer
