"""Arguments that an operator must refuse: OpInfo's error inputs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

from ..cases import Case, CaseSource
from ..group import GroupKey
from ..selection import Samples
from .opinfo import ON_HOST, OpInfoSource, without_double


class ErrorSource(CaseSource):
    """The error inputs of every OpInfo that has some; the device must raise what the CPU raises."""

    name = "errors"

    def __init__(self, opinfos: OpInfoSource) -> None:
        self._opinfos = opinfos

    def groups(self) -> Iterable[GroupKey]:
        """One group for each OpInfo; its inputs have the dtypes that the OpInfo chooses."""
        seen = set()
        for key in self._opinfos.groups():
            name = (key.operator, key.variant)
            if name not in seen and "/" not in key.variant and self._opinfos.opinfo(key).error_inputs_func is not None:
                seen.add(name)
                yield replace(key, source=self.name)

    def cases(self, key: GroupKey, samples: Samples) -> Iterator[Case]:
        """One case for each error input."""
        op = self._opinfos.opinfo(replace(key, source=self._opinfos.name))
        for error_input in op.error_inputs("cpu", set_seed=False):
            yield self._case(key, op, error_input)

    @staticmethod
    def _case(key: GroupKey, op: Any, error_input: Any) -> Case:
        sample = error_input.sample_input
        case = Case(op.op, (sample.input, *sample.args), dict(sample.kwargs), errors_count=True, title="must raise")
        case.on_host = ON_HOST.get(key.operator, frozenset())
        return without_double(case)
