"""Learns calls from the samples of OpInfos and ModuleInfos: every overload that they reach, with its arguments."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from ...judging.execution import execute, gradients
from ...model.case import Case, CaseSource, seed_generators
from ...model.group import GroupKey
from ...model.nested import map_leaves
from ...model.selection import Samples
from ..calls.recipes import UnencodableError, encode, signature
from ..sources.modules import ModuleSource
from ..sources.opinfo import OpInfoSource

CALLS_KEPT = 5
SAMPLES = 12


class CallRecording(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """While active, records up to `CALLS_KEPT` different calls of every overload."""

    def __init__(self, dtype: str, calls_of: dict[str, list[dict[str, Any]]]) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._dtype = dtype
        self._calls_of = calls_of

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Record the call as it comes, before the operator can change its arguments."""
        kwargs = kwargs or {}
        self.record_call(func.name(), args, kwargs)
        return func(*args, **kwargs)

    def record_call(self, name: str, args: Any, kwargs: Any) -> None:
        """Keep the call, unless enough are recorded, it is recorded, or a recipe cannot hold it."""
        calls = self._calls_of.setdefault(name, [])
        if len(calls) >= CALLS_KEPT:
            return
        try:
            call = {
                "args": [encode(arg) for arg in args],
                "kwargs": {name: encode(value) for name, value in kwargs.items()},
                "dtype": self._dtype,
            }
        except UnencodableError:
            return
        seen = {signature([c["args"], c["kwargs"]]) for c in calls}
        if signature([call["args"], call["kwargs"]]) not in seen:
            calls.append(call)


def record(keys: Iterable[GroupKey]) -> dict[str, list[dict[str, Any]]]:
    """The calls that some samples of these groups make on the CPU, by overload."""
    opinfos = OpInfoSource()
    sources: dict[str, CaseSource] = {opinfos.name: opinfos, ModuleSource.name: ModuleSource()}
    calls_of: dict[str, list[dict[str, Any]]] = {}
    for key in keys:
        source = sources[key.source]
        seed_generators(0, key.label)
        try:
            cases = evenly_spaced(list(source.cases(key, Samples.DEFAULT)))
        except Exception:  # an entry without samples teaches nothing
            continue
        overloads = _overloads_named(opinfos.opinfo(key).aten_name) if source is opinfos else []
        for case in cases:
            _try_directly(case, overloads, CallRecording(key.dtype, calls_of))
            _run_recorded(case, CallRecording(key.dtype, calls_of))
    return calls_of


def evenly_spaced(cases: list[Case]) -> list[Case]:
    """At most `SAMPLES` cases, evenly spread, because samplers yield similar cases next to each other."""
    if len(cases) <= SAMPLES:
        return cases
    return [cases[round(i * (len(cases) - 1) / (SAMPLES - 1))] for i in range(SAMPLES)]


def _overloads_named(aten_name: str) -> list[Any]:
    packet = getattr(torch.ops.aten, aten_name, None)
    return [getattr(packet, name) for name in packet.overloads()] if packet is not None else []


def _try_directly(case: Case, overloads: list[Any], recording: CallRecording) -> None:
    """Record the composite overloads that accept a sample's arguments; a dispatch mode does not see composites."""
    args, kwargs = map_leaves(_detached, (case.args, case.kwargs))
    for overload in overloads:
        try:
            overload(*map_leaves(_copied, args), **map_leaves(_copied, kwargs))
        except Exception:  # the sample is for another overload
            continue
        recording.record_call(overload.name(), args, kwargs)


def _detached(leaf: Any) -> Any:
    return leaf.detach() if isinstance(leaf, torch.Tensor) else leaf


def _copied(leaf: Any) -> Any:
    return leaf.clone() if isinstance(leaf, torch.Tensor) else leaf


def _run_recorded(case: Case, recording: CallRecording) -> None:
    try:
        with recording:
            execution = execute(case, (case.args, case.kwargs))
            if execution.differentiable and execution.inputs:
                gradients(execution, [torch.ones_like(t) for t in execution.differentiable])
    except Exception:  # a sample that the CPU refuses teaches nothing
        return
