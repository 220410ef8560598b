"""What a kernel has to show before anybody relies on it: the checks behind the tests that a scaffold comes with.

Every check compares mps with the CPU (in float64 where the operator has it) through the auditor's own judge, on a real
device or on the simulated one. A check that finds no inputs fails: nothing executed is never a pass.
"""

from __future__ import annotations

import importlib
import importlib.util
import re
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache, wraps
from pathlib import Path
from typing import Any

import torch

from ..audit.cases.calls.invocation import SchemaCall
from ..audit.cases.sources.errors import ErrorSource
from ..audit.cases.sources.forms import FormSource
from ..audit.cases.sources.layouts import LAYOUTS, LayoutSource, in_layout
from ..audit.cases.sources.opinfo import OpInfoSource
from ..audit.cases.sources.special_values import SpecialValueSource
from ..audit.judging.acceptance import judged
from ..audit.judging.transfer import move
from ..audit.model.case import Case, make_cases
from ..audit.model.group import GroupKey
from ..audit.model.nested import leaves
from ..audit.model.selection import Samples
from ..audit.releases.surface.profiles import coverage_profile
from ..simulator.device import loading
from ..simulator.opening import MpsDevice, device_of_this_process
from .conformance_inputs import dimensions_of, elements_of, redrawn, runs_on_cpu, shapes_of, with_a_dimension_more
from .operators.known_calls import DTYPES, known_calls

NOT_WRITTEN = "is not written yet"
SEED = 20230524

_MISSING_KERNEL = re.compile(
    r"aten::(?P<name>[\w.]+)(?='? (?:has no kernel for mps|is not currently (?:supported|implemented)))"
)

# How many calls have to work before a kernel counts as written.
_TRIED = 4


def device() -> MpsDevice:
    """The mps device, for generated tests."""
    return device_of_this_process(coverage_profile)


def device_without(*overloads: str) -> MpsDevice:
    """The device for generated tests; a simulated one is loaded without kernels of its own for these overloads of aten.

    An operator that torch has a kernel for would otherwise answer in place of the one under test, wherever that serves
    another of its overloads. A device that is loaded already stays as it is, and so does a real one.
    """
    if not loading.is_loaded() and not torch.backends.mps.is_built():
        coverage = coverage_profile(None)
        loading.load(replace(coverage, native=coverage.native.difference(overloads)))
    return device()


class KernelNotWrittenError(AssertionError):
    """The kernel under test is still a scaffold."""


@dataclass(frozen=True)
class Subject:
    """A kernel under test.

    Attributes:
        operator: `aten::mode`.
        overloads: the overloads that it serves, `mode.values`.
        opinfos: the names of torch's OpInfos that call it.
        elementwise: whether any shape of inputs will do.
    """

    operator: str
    overloads: tuple[str, ...]
    opinfos: tuple[str, ...] = ()
    elementwise: bool = False

    # ---------------------------------------------------------------------------------- the checks
    def check_samples(self, dtype: str) -> None:
        """Values, shapes, dtypes and gradients on the samples of torch's OpInfos and on recorded calls."""
        self._judge_all([*self._of_source("samples", dtype, Samples.DEFAULT), *self._recorded(dtype)])

    def check_layouts(self, dtype: str) -> None:
        """The same values whatever the layout: transposed, with steps, gaps and offsets, expanded, channels last."""
        derived = self._of_source("layouts", dtype)
        varied = [
            other
            for name in self._readers()
            for case in self._recorded(dtype, name)
            for layout in LAYOUTS
            if (other := in_layout(case, layout))
        ]
        # What only writes to its arguments (an optimizer's step) is called as it is.
        self._judge_all([*self._of_twodimensions_of(dtype), *derived, *varied] or self._recorded(dtype))

    def _of_twodimensions_of(self, dtype: str) -> list[Case]:
        """In every layout, an input of more than one dimension: nothing can be transposed in one that is flat.

        Samples that are flat get a dimension more, where the CPU accepts that.
        """
        samples = [case for case in self._of_source("samples", dtype) if not case.skipped]
        readers = [case for name in self._readers() for case in self._recorded(dtype, name)]
        for case in [*samples, *readers]:
            wider = case if dimensions_of(case) >= 2 else with_a_dimension_more(case)
            if wider is not None:
                return [other for layout in LAYOUTS if (other := in_layout(wider, layout))]
        return []

    def check_special_values(self, dtype: str) -> None:
        """NaN, infinities, zeros of both signs, the smallest and the largest numbers."""
        self._judge_all(self._of_source("special values", dtype) or self._recorded(dtype))

    def check_forms(self, dtype: str) -> None:
        """out= of the right, wrong and empty shape, in place, inference mode, twice, from two threads, autocast."""
        self._judge_all(self._of_source("forms", dtype) or self._recorded(dtype))

    def check_errors(self) -> None:
        """What the CPU refuses, mps refuses, with the same type of exception."""
        cases = self._of_source("errors", "float32") or self._of_source("errors", None)
        if cases:
            self._judge_all(cases)
        else:
            self.check_written()

    def check_drawn(self, dtype: str, shape: tuple[int, ...], seed: int, which: int) -> None:
        """One drawn input: a sample with new values from `seed`, in `shape` where the kernel is elementwise.

        What the CPU refuses (a scale below zero, sizes that belong together) keeps its shapes, or its values too.
        """
        cases = [*self._of_source("samples", dtype), *self._recorded(dtype)]
        self._require(cases)
        case = cases[which % len(cases)]
        # Inputs of several shapes (glu's gradients) belong together as they are.
        is_any_shape = self.elementwise and len(shapes_of(case)) == 1

        made = [redrawn(case, seed, shape), redrawn(case, seed)] if is_any_shape else [redrawn(case, seed)]
        self._judge_all([next((one for one in made if runs_on_cpu(one)), case)])

    def check_gradcheck(self) -> None:
        """The analytic gradient against finite differences on the device, in float32 with wide steps."""
        cases = [case for case in self._of_source("samples", "float32") if case.differentiable]
        if not cases:
            self.check_written()
            return
        case = min(cases, key=elements_of)
        args, kwargs = move(case.args, case.kwargs, "mps", case.on_host)
        tensors = [a.detach().requires_grad_() for a in args if isinstance(a, torch.Tensor) and a.is_floating_point()]
        if not tensors or any(tensor.numel() > 64 for tensor in tensors):
            self.check_written()
            return

        def call(*given: torch.Tensor) -> Any:
            fresh = iter(given)
            replaced = [next(fresh) if isinstance(a, torch.Tensor) and a.is_floating_point() else a for a in args]
            return case.process_output(case.call(*replaced, **kwargs))

        try:
            with self._explained():
                torch.autograd.gradcheck(call, tensors, eps=1e-2, atol=5e-2, rtol=5e-2, nondet_tol=1e-5)
        except NotImplementedError as error:
            if not self._lacks_backward(str(error)):
                raise

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
                assert torch.equal(first, second) or torch.equal(first.isnan(), second.isnan()), (
                    f"{case.title}: differs"
                )

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
                    _overload(overload),
                    args,
                    kwargs,
                    test_utils=("test_schema", "test_faketensor"),
                )

    def check_no_fallback(self, dtype: str) -> None:
        """Nothing inside the call runs on the CPU: neither this operator nor one that the kernel uses."""
        for case in [*self._of_source("samples", dtype), *self._recorded(dtype)]:
            if case.skipped:
                continue
            args, kwargs = move(case.args, case.kwargs, "mps", case.on_host)
            with device().recorder.recording() as fallen, self._explained():
                case.call(*args, **kwargs)
            assert not fallen, f"{self.operator}: ran on the CPU inside the call: {', '.join(fallen)}"

    def check_written(self) -> None:
        """The kernel is no scaffold any more: calling it does not say that it is not written."""
        cases = [*self._recorded("float32"), *self._of_source("samples", "float32")]
        called = [case for case in cases if not case.skipped][:_TRIED]
        self._require(called)
        for case in called:
            args, kwargs = move(case.args, case.kwargs, "mps", case.on_host)
            with self._explained():
                case.call(*args, **kwargs)

    # ---------------------------------------------------------------------------------- inputs
    def _readers(self) -> list[str]:
        """The operator's overloads that write to no argument: of a kernel for outputs, the functional form."""
        packet = getattr(torch.ops.aten, self.operator.removeprefix("aten::"))
        names = [str(getattr(packet, one)).removeprefix("aten.").removesuffix(".default") for one in packet.overloads()]
        return [name for name in names if not _writes(name)]

    def _of_source(self, name: str, dtype: str | None, samples: Samples = Samples.QUICK) -> list[Case]:
        source = _sources()[name]
        wanted = [
            key
            for key in _groups(name)
            if key.operator in self.opinfos and dtype in (None, key.dtype) and "/" not in key.variant
        ]
        return [case for key in _first_of_each(wanted) for case in make_cases(source, key, samples, SEED).values()]

    def _recorded(self, dtype: str, overload: str | None = None) -> list[Case]:
        """Calls of the overloads that the CPU is known to accept.

        An operator that takes none of DTYPES is called with its own, whatever is asked for; one that the CPU does not
        take in this dtype, with another of them.
        """
        cases = []
        for name in (overload,) if overload else self.overloads:
            calls = known_calls(f"aten::{name}")
            fitting = [(args, kwargs) for own, args, kwargs in calls if own == dtype]
            if not any(own in DTYPES for own, _, _ in calls):
                fitting = [(args, kwargs) for _, args, kwargs in calls]
            elif not fitting:  # nothing to compare with in this dtype: the CPU refuses it
                first = next(own for own, _, _ in calls if own in DTYPES)
                fitting = [(args, kwargs) for own, args, kwargs in calls if own == first]
            written = SchemaCall(f"aten::{name}")
            cases += [Case(written, args, kwargs, title=f"a call of aten::{name}") for args, kwargs in fitting]
        return cases

    # ---------------------------------------------------------------------------------- judging
    def _judge_all(self, cases: Iterable[Case]) -> None:
        listed = [case for case in cases if not case.skipped]
        self._require(listed)
        accepted = 0
        for one in judged(listed, device().recorder, SEED, self.operator):
            if NOT_WRITTEN in one.outcome.message:
                raise KernelNotWrittenError(one.outcome.message)
            if one.refused and self._lacks_backward(one.reason):
                forward = replace(one.case, differentiable=False)
                (one,) = judged([forward], device().recorder, SEED, f"{self.operator} {one.position}")
                if one.refused and self._lacks_backward(one.reason):
                    continue  # a form that is nothing but a derivative
            assert not one.refused, f"{one.case.title or 'sample'} {one.position}: {one.reason}"
            accepted += one.accepted
        assert accepted, f"{self.operator}: no case could be executed on the CPU, so nothing was compared"

    def _lacks_backward(self, reason: str) -> bool:
        """Whether what is missing is the kernel of a backward alone, which is another gap: it is told, and no more.

        Values are compared all the same.
        """
        missing = {match["name"] for match in _MISSING_KERNEL.finditer(reason)}
        if not missing or not all("backward" in name and name not in self.overloads for name in missing):
            return False
        names = ", ".join(f"aten::{name}" for name in sorted(missing))
        warnings.warn(f"{self.operator}: no gradients were compared: {names} has no kernel on mps", stacklevel=2)
        return True

    def _require(self, cases: list[Case]) -> None:
        if not cases:
            raise AssertionError(
                f"{self.operator}: no inputs are known, neither from an OpInfo nor from memory; write a test with yours"
            )

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """Turns the error of an unwritten kernel into KernelNotWrittenError, whatever wrapped it."""
        try:
            yield
        except Exception as error:
            if NOT_WRITTEN in str(error):
                raise KernelNotWrittenError(str(error).splitlines()[0]) from None
            raise


@contextmanager
def registered(module: str | Path) -> Iterator[list[str]]:
    """Inside, the functions in a kernel module's KERNELS table answer on mps. Gives the overloads that were called.

    `module`: its dotted name, or the path of its file.
    """
    device()
    table = _imported(module).KERNELS
    libraries = []
    called: list[str] = []
    for overload, function in table:
        library = torch.library.Library("aten", "IMPL")  # type: ignore[no-untyped-call]
        _register(library, overload.removeprefix("aten::"), _noted(function, overload, called))
        libraries.append(library)
    try:
        yield called
    finally:
        for library in libraries:
            library._destroy()  # type: ignore[no-untyped-call]


def _noted(function: Callable[..., Any], overload: str, called: list[str]) -> Callable[..., Any]:
    """The function, which notes that it was called."""

    @wraps(function)
    def noted(*args: Any, **kwargs: Any) -> Any:
        called.append(overload)
        return function(*args, **kwargs)

    return noted


def _register(library: Any, name: str, function: Callable[..., Any]) -> None:
    try:
        library.impl(name, function, "MPS", allow_override=True)
    except TypeError:  # releases before allow_override simply override
        library.impl(name, function, "MPS")


def _imported(module: str | Path) -> Any:
    if isinstance(module, str):
        return importlib.import_module(module)
    spec = importlib.util.spec_from_file_location(f"scaffolded_{module.stem}", module)
    if spec is None or spec.loader is None:
        raise ImportError(f"{module} is no Python file")
    found = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(found)
    return found


@cache
def _sources() -> dict[str, Any]:
    opinfos = OpInfoSource()
    return {
        "samples": opinfos,
        "errors": ErrorSource(opinfos),
        "layouts": LayoutSource(opinfos),
        "special values": SpecialValueSource(opinfos),
        "forms": FormSource(opinfos),
    }


@cache
def _groups(source: str) -> tuple[GroupKey, ...]:
    return tuple(_sources()[source].groups())


def _first_of_each(keys: Iterable[GroupKey]) -> list[GroupKey]:
    """One group for each operator and variant: where any dtype will do, the first is enough."""
    found: dict[tuple[str, str], GroupKey] = {}
    for key in keys:
        found.setdefault((key.operator, key.variant), key)
    return list(found.values())


def _overload(name: str) -> Any:
    operator, _, overload = name.partition(".")
    return getattr(getattr(torch.ops.aten, operator), overload or "default")


def _writes(name: str) -> bool:
    """Whether an overload writes to an argument, which cannot have every layout."""
    arguments = _overload(name)._schema.arguments
    return any(argument.alias_info is not None and argument.alias_info.is_write for argument in arguments)


def _is_tensor(leaf: object) -> bool:
    return isinstance(leaf, torch.Tensor)
