"""The checks of the tests that `mpsmith scaffold` generates for a kernel.

Each check compares mps with the CPU (in float64 if the operator supports it) through the auditor's judge, on a real or
a simulated device. A check without inputs fails: nothing executed is never a pass.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import torch

from ...audit.cases.calls.invocation import SchemaCall, overload_of
from ...audit.cases.sources.derived import VariedSource
from ...audit.cases.sources.errors import ERROR_FACTOR
from ...audit.cases.sources.forms import FORM_FACTOR
from ...audit.cases.sources.layouts import LAYOUT_FACTOR, in_every_layout
from ...audit.cases.sources.opinfo import OpInfoSource
from ...audit.cases.sources.special_values import SPECIAL_VALUE_FACTOR
from ...audit.judging.acceptance import judged
from ...audit.judging.transfer import move
from ...audit.model.case import Case, make_cases
from ...audit.model.group import GroupKey
from ...audit.model.nested import leaves
from ...audit.model.selection import Samples
from .device_under_test import device
from .drawn_inputs import dimensions_of, redrawn, runs_on_cpu, shapes_of, with_added_dimension
from .known_calls import DTYPES, known_calls
from .verify import SEED

# pytest shows the line of the test and the message, not the lines of these checks.
__tracebackhide__ = True
NOT_WRITTEN = "is not written yet"

_MISSING_KERNEL = re.compile(
    r"aten::(?P<name>[\w.]+)(?='? (?:has no kernel for mps|is not currently (?:supported|implemented)))"
)
# How many calls must work before a kernel counts as written.
_MOST_CALLS = 4


class KernelNotWrittenError(AssertionError):
    """The kernel under test is still a scaffold."""


@dataclass(frozen=True)
class Subject:
    """A kernel under test.

    Attributes:
        operator: `aten::mode`.
        overloads: the overloads that it implements, `mode.values`.
        opinfos: the names of torch's OpInfos that call it.
        elementwise: whether it takes inputs of any shape.
    """

    operator: str
    overloads: tuple[str, ...]
    opinfos: tuple[str, ...] = ()
    elementwise: bool = False

    def check_samples(self, dtype: str) -> None:
        """Values, shapes, dtypes and gradients on the samples of torch's OpInfos and on recorded calls."""
        self._judge_all([*self._of_source("samples", dtype, Samples.DEFAULT), *self._recorded(dtype)])

    def check_layouts(self, dtype: str) -> None:
        """The same values in every layout: transposed, with steps, gaps and offsets, expanded, channels last."""
        varied = [
            *self._two_dimensional_layouts(dtype),
            *self._of_source("layouts", dtype),
            *(other for case in self._recorded_reads(dtype) for other in in_every_layout(case)),
        ]
        # An overload that only writes to its arguments, such as an optimizer's step, is called as it is.
        self._judge_all(varied or self._recorded(dtype))

    def _two_dimensional_layouts(self, dtype: str) -> list[Case]:
        """Every layout of an input with at least two dimensions; a 1-dim tensor cannot be transposed.

        A 1-dim sample gets a second dimension if the CPU accepts that.
        """
        samples = [case for case in self._of_source("samples", dtype) if not case.skipped]
        for case in [*samples, *self._recorded_reads(dtype)]:
            wider = case if dimensions_of(case) >= 2 else with_added_dimension(case)
            if wider is not None:
                return list(in_every_layout(wider))
        return []

    def check_special_values(self, dtype: str) -> None:
        """NaN, infinities, zeros of both signs, the smallest and the largest numbers."""
        self._judge_all(self._of_source("special values", dtype) or self._recorded(dtype))

    def check_forms(self, dtype: str) -> None:
        """out= of the right, wrong and empty shape, in place, inference mode, twice, from two threads, autocast."""
        self._judge_all(self._of_source("forms", dtype) or self._recorded(dtype))

    def check_errors(self) -> None:
        """mps refuses the calls that the CPU refuses, with the same type of exception."""
        cases = self._of_source("errors", "float32") or self._of_source("errors", None)
        if cases:
            self._judge_all(cases)
        else:
            self.check_written()

    def check_drawn(self, dtype: str, shape: tuple[int, ...], seed: int, which: int) -> None:
        """A sample with new values from `seed`, in `shape` if the kernel is elementwise.

        If the CPU refuses that (a negative scale, sizes that must match), the sample keeps its shapes, or also its
        values.
        """
        cases = [*self._of_source("samples", dtype), *self._recorded(dtype)]
        self._require(cases)
        case = cases[which % len(cases)]
        drawn = [redrawn(case, seed)]
        if self.elementwise and len(shapes_of(case)) == 1:  # several shapes, as of glu's gradients, must match
            drawn.insert(0, redrawn(case, seed, shape))
        self._judge_all([next((candidate for candidate in drawn if runs_on_cpu(candidate)), case)])

    def check_same_twice(self, dtype: str) -> None:
        """The same inputs give the same bits."""
        cases = [*self._of_source("samples", dtype), *self._recorded(dtype)]
        self._require(cases)
        for case in cases:
            if case.skipped:
                continue
            results = []
            for _ in range(2):
                args, kwargs = move(case.args, case.kwargs, "mps", case.on_host)
                torch.mps.manual_seed(SEED)
                with self._explained():
                    results.append([leaf.cpu() for leaf in leaves(case.call(*args, **kwargs)) if _is_tensor(leaf)])
            for first, second in zip(*results, strict=True):
                if not torch.equal(first, second) and not torch.equal(first.isnan(), second.isnan()):
                    raise AssertionError(f"{case.title}: the second call gave other bits")

    def check_opcheck(self, overload: str) -> None:
        """`torch.library.opcheck`: schema, fake tensors, registration of autograd."""
        cases = self._recorded("float32", overload)
        if not cases:
            self.check_written()
            return
        for case in cases[:2]:
            args, kwargs = move(case.args, case.kwargs, "mps")
            with self._explained():
                torch.library.opcheck(
                    overload_of(f"aten::{overload}"), args, kwargs, test_utils=("test_schema", "test_faketensor")
                )

    def check_written(self) -> None:
        """The kernel is written: calling it does not raise the scaffold's error."""
        cases = [*self._recorded("float32"), *self._of_source("samples", "float32")]
        called = [case for case in cases if not case.skipped][:_MOST_CALLS]
        self._require(called)
        for case in called:
            args, kwargs = move(case.args, case.kwargs, "mps", case.on_host)
            with self._explained():
                case.call(*args, **kwargs)

    def _recorded_reads(self, dtype: str) -> list[Case]:
        """Recorded calls of the operator's overloads that write to no argument, which can be in any layout."""
        packet = getattr(torch.ops.aten, self.operator.removeprefix("aten::"))
        names = [
            str(getattr(packet, overload)).removeprefix("aten.").removesuffix(".default")
            for overload in packet.overloads()
        ]
        return [case for name in names if not _writes(name) for case in self._recorded(dtype, name)]

    def _of_source(self, name: str, dtype: str | None, samples: Samples = Samples.QUICK) -> list[Case]:
        source = _sources()[name]
        wanted = [
            key
            for key in _groups(name)
            if key.operator in self.opinfos and dtype in (None, key.dtype) and "/" not in key.variant
        ]
        return [case for key in _first_of_each(wanted) for case in make_cases(source, key, samples, SEED).values()]

    def _recorded(self, dtype: str, overload: str | None = None) -> list[Case]:
        """Recorded calls of the overloads in a dtype.

        If the CPU refuses this dtype, they are in another one of DTYPES, or in any dtype if it refuses all of those.
        """
        cases = []
        for name in (overload,) if overload else self.overloads:
            calls = known_calls(f"aten::{name}")
            fitting = [(args, kwargs) for own, args, kwargs in calls if own == dtype]
            if not any(own in DTYPES for own, _, _ in calls):
                fitting = [(args, kwargs) for _, args, kwargs in calls]
            elif not fitting:
                first = next(own for own, _, _ in calls if own in DTYPES)
                fitting = [(args, kwargs) for own, args, kwargs in calls if own == first]
            # No kernel is generated for complex numbers; a call of this dtype may have them beside it.
            fitting = [call for call in fitting if not _has_complex(call)] or fitting
            written = SchemaCall(f"aten::{name}")
            cases += [Case(written, args, kwargs, title=f"a call of aten::{name}") for args, kwargs in fitting]
        return cases

    def _judge_all(self, cases: Iterable[Case]) -> None:
        listed = [case for case in cases if not case.skipped]
        self._require(listed)
        warnings.filterwarnings("ignore", message="An output with one or more elements was resized")
        accepted = 0
        for judged_case in judged(listed, device().recorder, SEED, self.operator):
            if NOT_WRITTEN in judged_case.outcome.message:
                raise KernelNotWrittenError(judged_case.outcome.message)
            if judged_case.refused and (others := self._other_gaps(judged_case.reason)):
                forward = replace(judged_case.case, differentiable=False)
                (judged_case,) = judged([forward], device().recorder, SEED, f"{self.operator} {judged_case.position}")
                if not judged_case.refused:
                    self._warn_of(others)
                elif (left := self._other_gaps(judged_case.reason)) and all("backward" in name for name in left):
                    self._warn_of(left)
                    continue  # the overload itself is a derivative
            if judged_case.refused:
                title = judged_case.case.title or "sample"
                raise AssertionError(f"{title} {judged_case.position}: {judged_case.reason}")
            accepted += judged_case.accepted
        if not accepted:
            raise AssertionError(f"{self.operator}: no case could be executed on the CPU, so nothing was compared")

    def _other_gaps(self, reason: str) -> list[str]:
        """The overloads without a kernel that a reason names; none if one of them is under test."""
        missing = {match["name"] for match in _MISSING_KERNEL.finditer(reason)}
        return sorted(missing) if missing.isdisjoint(self.overloads) else []

    def _warn_of(self, gaps: list[str]) -> None:
        """Warn that values alone were compared: the gradient needs another gap, as take's needs put_."""
        names = ", ".join(f"aten::{name}" for name in gaps)
        warnings.warn(f"{self.operator}: no gradients were compared: {names} has no kernel on mps", stacklevel=2)

    def _require(self, cases: list[Case]) -> None:
        if not cases:
            raise AssertionError(
                f"{self.operator}: no OpInfo and no recorded call gives inputs; write a test with your own"
            )

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """Turns the error of an unwritten kernel into KernelNotWrittenError, also if it is wrapped in another error."""
        try:
            yield
        except Exception as error:
            if NOT_WRITTEN in str(error):
                raise KernelNotWrittenError(str(error).splitlines()[0]) from None
            raise


def _has_complex(call: Any) -> bool:
    return any(leaf.is_complex() for leaf in leaves(call) if _is_tensor(leaf))


@cache
def _sources() -> dict[str, Any]:
    opinfos = OpInfoSource()
    return {
        "samples": opinfos,
        "errors": VariedSource(ERROR_FACTOR, opinfos),
        "layouts": VariedSource(LAYOUT_FACTOR, opinfos),
        "special values": VariedSource(SPECIAL_VALUE_FACTOR, opinfos),
        "forms": VariedSource(FORM_FACTOR, opinfos),
    }


@cache
def _groups(source: str) -> tuple[GroupKey, ...]:
    return tuple(_sources()[source].groups())


def _first_of_each(keys: Iterable[GroupKey]) -> list[GroupKey]:
    """The first group of each operator and variant."""
    first: dict[tuple[str, str], GroupKey] = {}
    for key in keys:
        first.setdefault((key.operator, key.variant), key)
    return list(first.values())


def _writes(name: str) -> bool:
    """Whether an overload writes to an argument."""
    arguments = overload_of(f"aten::{name}")._schema.arguments
    return any(argument.alias_info is not None and argument.alias_info.is_write for argument in arguments)


def _is_tensor(leaf: object) -> bool:
    return isinstance(leaf, torch.Tensor)
