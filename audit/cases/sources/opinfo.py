"""Cases from torch's own OpInfos: `op_db`, the foreach functions, and the sparse samples of both."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from typing import Any

import torch

from ...model.case import UNINITIALISED, Case, CaseSource
from ...model.group import GroupKey
from ...model.nested import leaves
from ...model.selection import DTYPES, Samples
from .torch_testing import without_the_compiler

# The OpInfos of operators whose outputs get their strides from the inputs'.
ELEMENTWISE = ("UnaryUfuncInfo", "BinaryUfuncInfo")

# Arguments that stay on the CPU: (operator, position). tensor_split reads its indices on the host, on every device.
ON_HOST = {"tensor_split": frozenset({1})}

SPARSE_COO = "sparse_coo"
# A marker for what the in-place form of a foreach function is called with.
INPLACE = "inplace"
COMPRESSED = ("sparse_csr", "sparse_csc", "sparse_bsr", "sparse_bsc")


# Operators with a group that takes most of a minute on the CPU; started last it would hold up the whole audit.
SLOWEST = frozenset({"grid_sampler_3d"})


class OpInfoSource(CaseSource):
    """The OpInfos of the installed torch, every sample of every dtype that mps and the CPU both have."""

    name = "opinfo"
    slowest = SLOWEST
    repeats = True

    def groups(self) -> Iterable[GroupKey]:
        """One group for each OpInfo, variant, form and dtype."""
        return self._keys

    @cached_property
    def _keys(self) -> tuple[GroupKey, ...]:
        """The groups; a score of derived sources ask for them."""
        return tuple(
            GroupKey(self.name, operator, variant, dtype, "fallback")
            for (operator, variant), op in self._entries.items()
            for supported in [op.supported_dtypes("cpu")]
            for dtype in DTYPES
            if getattr(torch, dtype) in supported
        )

    def opinfo(self, key: GroupKey) -> Any:
        """The OpInfo of a group."""
        return self._entries[key.operator, key.variant]

    def cases(self, key: GroupKey, samples: Samples) -> Iterator[Case]:
        """The samples of one OpInfo for one dtype, on the CPU, as the OpInfo's own sampler makes them."""
        op = self.opinfo(key)
        differentiable = bool(op.supports_autograd) and getattr(torch, key.dtype) in op.supported_backward_dtypes("cpu")
        return self.samples(key, samples, differentiable and key.variant.rsplit("/", 1)[-1] != INPLACE)

    def samples(self, key: GroupKey, samples: Samples, differentiable: bool) -> Iterator[Case]:
        """The samples that the sampler makes where gradients are wanted, or those where they are not."""
        op = self.opinfo(key)
        dtype = getattr(torch, key.dtype)
        uninitialised = "uninitialised" if key.operator in UNINITIALISED else ""
        form = key.variant.rsplit("/", 1)[-1]
        call = op.inplace_variant if form == INPLACE else op.op
        for sample in self._samples(op, form, dtype, differentiable, samples):
            case = Case(
                call,
                (sample.input, *sample.args),
                dict(sample.kwargs),
                differentiable,
                sample.output_process_fn_grad,
                uninitialised,
                ON_HOST.get(key.operator, frozenset()),
            )
            case.elementwise = type(op).__name__ in ELEMENTWISE
            inputs = list(leaves((case.args, case.kwargs)))
            case.default_device = "device" not in case.kwargs and not any(isinstance(i, torch.Tensor) for i in inputs)
            yield without_double(case)

    @staticmethod
    def _has_sampler(op: Any, layout: str) -> bool:
        sampler = getattr(op, f"sample_inputs_{layout}_func")
        return getattr(sampler, "__name__", "") != "_sample_inputs_unspecified"

    def _samples(self, op: Any, form: str, dtype: torch.dtype, differentiable: bool, samples: Samples) -> Iterable[Any]:
        if form == SPARSE_COO:
            return op.sample_inputs_sparse(torch.sparse_coo, "cpu", dtype, requires_grad=differentiable)  # type: ignore[no-any-return]
        if form in COMPRESSED:
            return op.sample_inputs_sparse(getattr(torch, form), "cpu", dtype, requires_grad=differentiable)  # type: ignore[no-any-return]
        sampler = op.reference_inputs if samples is Samples.FULL else op.sample_inputs
        # set_seed=False: our own seed rules; torch would set its one fixed seed before every sample.
        return sampler("cpu", dtype, requires_grad=differentiable, set_seed=False)  # type: ignore[no-any-return]

    @cached_property
    def _entries(self) -> dict[tuple[str, str], Any]:
        """OpInfos by (name, variant); a form of the call that is not the plain one ends the variant after a slash."""
        with without_the_compiler():
            from torch.testing._internal import common_methods_invocations as invocations

        _unseed_random_operators()
        _find_no_test()
        entries: dict[tuple[str, str], Any] = {}
        for op in invocations.op_db:
            variant = op.variant_test_name
            entries[op.name, variant] = op
            for layout in (SPARSE_COO, *COMPRESSED):
                if op.supports_sparse_layout(getattr(torch, layout)) and self._has_sampler(op, layout):
                    entries[op.name, f"{variant}/{layout}"] = op
        for kind in ("unary", "binary", "pointwise", "reduce", "other"):
            for op in getattr(invocations, f"foreach_{kind}_op_db", ()):
                if op.op is not None:
                    entries[op.name, op.variant_test_name] = op
                if op.inplace_variant is not None and op.inplace_variant is not op.op:
                    entries[op.name, f"{op.variant_test_name}/{INPLACE}"] = op
        return entries


def without_double(case: Case) -> Case:
    """The case; skipped if an input is a float64 or complex128 tensor, or such a dtype."""
    if any(_is_double(value) for value in leaves((case.args, case.kwargs))):
        case.skipped = "asks for float64, a dtype that mps refuses by design"
    return case


def _is_double(value: Any) -> bool:
    dtype = value.dtype if isinstance(value, torch.Tensor) else value
    return dtype in (torch.float64, torch.complex128)


def _unseed_random_operators() -> None:
    """Let the OpInfos of random operators draw from the generator that the judge has seeded.

    They wrap the operator so that it runs under one fixed seed and leaves the generator's state as it was; then
    nothing would tell that the result is random, and two devices that draw differently would look wrong.
    """
    _replace_in_torch_testing("wrapper_set_seed", _call)


def _find_no_test() -> None:
    """Let samplers not search the whole stack, source files included, for a unittest that is not there.

    PyTorch names the sample in a failing test that way. Here it would take longer than the samples themselves.
    """
    _replace_in_torch_testing("extract_test_fn", lambda: None)


def _replace_in_torch_testing(name: str, function: Callable[..., Any]) -> None:
    for module_name, module in list(sys.modules.items()):
        if module_name.startswith("torch.testing._internal.") and hasattr(module, name):
            setattr(module, name, function)


def _call(operator: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    return operator(*args, **kwargs)
