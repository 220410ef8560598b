"""Predicted results of a known defect: the case runs on the CPU with a model in place of the defective overload.

A rule that explains a difference in values names a prediction. Every element that differs must equal the model's;
all others must be right, in every output, gradient and argument. So a second defect of the same operator stays
unexplained.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from inspect import signature
from typing import Any

import torch
from torch import Tensor
from torch._ops import OpOverload
from torch.utils._python_dispatch import TorchDispatchMode

from ....errors import one_line
from ...model.case import Case, described
from ...model.nested import leaves, map_leaves
from ..arguments import storage_of
from ..inner_calls import composite_key

# No model replaces calls inside of this kernel, and the CPU makes four for each image.
_WHOLE = frozenset({"aten::convolution_backward"})
_NAME = re.compile(r"^(?P<name>aten::(?:__\w+__|\w+?))_?(?:\.\w+)?$")


class Ulp:
    """Moves the intermediate results of a model by one ULP, each element up or down; not at all in the first run.

    The device may round them differently from the CPU. How far the model's results move determines what is accepted.

    Attributes:
        run: the number of the run, which chooses one of a model's alternatives.
        earlier: what models keep of earlier calls of the run.
        called: whether a model asked for values to be moved; if not, all runs have the same results.
    """

    def __init__(self, run: int = 0, *, moves: bool = True) -> None:
        self.run = run
        self.earlier: dict[str, Any] = {}
        self.called = False
        self._directions = torch.Generator().manual_seed(run) if run and moves else None

    def __call__(self, values: Tensor, ulps: float = 1.0) -> Tensor:
        """The values, moved by this many ULP. Real and imaginary parts are moved separately."""
        self.called = True
        if self._directions is None:
            return values
        if values.is_complex():
            return torch.complex(self(values.real, ulps), self(values.imag, ulps))
        signs = torch.randint(0, 2, values.shape, generator=self._directions) * 2 - 1
        return values * (1 + torch.finfo(values.dtype).eps * ulps * signs).to(values.dtype)


# Gets `Ulp` and the arguments of the call, given outputs only if it has a parameter `out`. Returns a tensor,
# `ContiguousWrite` or `ReplacedResult` for each tensor that the overload returns, then for each other that it writes;
# None where it says nothing.
Model = Callable[..., Any]
# Gets the device's result, the CPU's and the one in float64. Returns which elements may differ as they do.
Where = Callable[[Tensor, Tensor, Tensor], Tensor]


@dataclass(frozen=True)
class ContiguousWrite:
    """A result that is written as if a given output were contiguous, whatever its strides, and of the result's dtype.

    Attributes:
        values: the result, of the shape of the output.
        before: the output's contents before the call, which remain where nothing is written.
        restrides: whether the output is contiguous after the call.
    """

    values: Tensor
    before: Tensor
    restrides: bool = False

    def write(self, output: Tensor) -> None:
        """Replace the CPU's result in `output` by this one."""
        output.copy_(self.before)
        memory = storage_of(output).view(self.values.dtype)
        memory.as_strided((output.numel(),), (1,), output.storage_offset()).copy_(self.values.flatten())
        if self.restrides:
            output.as_strided_(output.shape, self.values.contiguous().stride())


@dataclass(frozen=True)
class ScaledMemory(ContiguousWrite):
    """As many elements of memory as a changed tensor has, from its first on, times `values`; others are unchanged."""

    def write(self, output: Tensor) -> None:
        """Scale the memory of `output` in place of what the CPU did."""
        output.copy_(self.before)
        memory = storage_of(output)[output.storage_offset() :][: output.numel()]
        memory.copy_(memory.float() * self.values)


@dataclass(frozen=True)
class KeptStrides:
    """A result in the memory of a given output and with its strides, where the CPU changes them.

    Attributes:
        values: the result, of the shape of the output.
        before: the output before the call, in a copy of its memory.
    """

    values: Tensor
    before: Tensor

    def write(self, output: Tensor) -> None:
        """Replace the CPU's result in `output` by this one."""
        storage_of(output).copy_(storage_of(self.before))
        output.as_strided_(self.before.shape, self.before.stride(), self.before.storage_offset()).copy_(self.values)


@dataclass(frozen=True)
class ReplacedResult:
    """Replaces the CPU's result by one of a different shape or dtype. For integers only shape and dtype count."""

    values: Tensor


class ModelError(Exception):
    """An error in a model, which must not count as a case that the model does not fit."""


@dataclass(frozen=True)
class Prediction:
    """A model of a defect.

    Attributes:
        name: the name that rules use.
        models: by the overload without its suffixes, "aten::erfc" for erfc, erfc_ and erfc.out. The case also runs with
            subnormal numbers flushed to zero.
        without_calls: it also applies to cases that call none of these overloads.
        alternatives: how many results the model may have; the number of the run chooses one, and each element may be as
            any of them. Intermediate results are not moved then.
        counts_integers: integers of a result of another shape or dtype must be the model's, too.
        nan_is_any_non_finite: where the model has NaN, the device may have NaN or an infinity of either sign.
        where: used in place of models: returns which elements of a result may differ as they do.
        with_calls: it applies only to cases that call one of these; if empty, `where` applies to all cases.
        gradients: functions that compute an overload and its gradients in place of the CPU, by name, "linear" for
            aten::linear. For overloads that torch decomposes before a model is called; `with_calls` names the parts.
    """

    name: str
    models: Mapping[str, Model] = field(default_factory=dict)
    without_calls: bool = False
    alternatives: int = 1
    counts_integers: bool = False
    nan_is_any_non_finite: bool = False
    where: Where | None = None
    with_calls: frozenset[str] = frozenset()
    gradients: Mapping[str, Callable[..., Tensor]] = field(default_factory=dict)

    @contextmanager
    def in_place(self) -> Iterator[None]:
        """Inside this context, the functions in `gradients` are registered in place of the CPU's."""
        if not self.gradients:
            yield
            return
        with torch.library._scoped_library("aten", "IMPL") as library:
            for name, function in self.gradients.items():
                library.impl(name, function, "AutogradCPU")
            yield

    def applies_to(self, called: set[str]) -> bool:
        """Whether it applies to a case that called these overloads (without their suffixes)."""
        of_any = self.without_calls or (self.where is not None and not self.with_calls)
        return of_any or bool(called & (self.with_calls | set(self.models)))


class Calls(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Replaces the results of overloads by those of models.

    Attributes:
        ulp: the argument `ulp` of the models.
        names: the overloads that were called, without their suffixes.
        modelled: whether a model has replaced any result.
    """

    def __init__(self, models: Mapping[str, Model], ulp: Ulp) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._models = models
        self.ulp = ulp
        self._open: list[str] = []  # the running composite kernels, one inside the other
        self.names: set[str] = set()
        self.modelled = False

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Make one call, and overwrite its result with the model's."""
        kwargs = kwargs or {}
        name = base_name(func)
        self.names.add(name)
        model = self._models.get(name)
        if model is None:
            return self._made(func, args, kwargs)
        given = kwargs if "out" in signature(model).parameters else _without_outputs(func, kwargs)
        before_args, before_kwargs = map_leaves(_copied, (args, given))
        # Of other outputs models need the values alone.
        if isinstance(out := given.get("grad_input"), Tensor) and out.layout is torch.strided:
            before_kwargs["grad_input"] = _with_its_memory(out)
        try:
            result = func(*args, **kwargs)
        except Exception:  # it refuses what a model gave it, such as an empty buffer
            instead = model(self.ulp, *before_args, **before_kwargs)
            if not self.modelled or not isinstance(instead, Tensor):
                raise
            return instead
        tensors = [leaf for leaf in leaves(_results(func, args, kwargs, result)) if isinstance(leaf, Tensor)]
        try:
            modelled = model(self.ulp, *before_args, **before_kwargs)
            self.modelled |= modelled is not None
            others: dict[int, Tensor] = {}
            for tensor, values in zip(tensors, () if modelled is None else leaves(modelled), strict=False):
                if isinstance(values, (ContiguousWrite, KeptStrides)):
                    values.write(tensor)
                elif isinstance(values, ReplacedResult):
                    is_given = any(tensor is argument for argument in kwargs.values())
                    if is_given and tensor.dtype is values.values.dtype:
                        tensor.resize_(values.values.shape).copy_(values.values)
                    else:
                        others[id(tensor)] = values.values
                elif values is not None:
                    tensor.copy_(values)
        except Exception as error:
            call = described(Case(func, before_args, before_kwargs))
            raise ModelError(f"of {func._name}{call} raises {type(error).__name__}: {one_line(error)}") from error
        return map_leaves(lambda leaf: others.get(id(leaf), leaf), result) if others else result

    def _made(self, func: OpOverload[..., Any], args: Any, kwargs: Any) -> Any:
        """Make the call. The inner calls of a composite kernel are dispatched to this mode, too."""
        is_whole = func._name in self._open or func._name in _WHOLE
        key = None if is_whole else composite_key(func, torch._C.DispatchKey.CPU)
        if key is None:
            return func(*args, **kwargs)
        self._open.append(func._name)
        try:
            with self:
                return func._op_dk(key, *args, **kwargs)
        finally:
            self._open.pop()


def base_name(func: OpOverload[..., Any]) -> str:
    """ "aten::erfc" for each of erfc, erfc_ and erfc.out."""
    named = _NAME.match(func._name)
    return func._name if named is None else named["name"]


def _without_outputs(func: OpOverload[..., Any], kwargs: dict[str, Any]) -> dict[str, Any]:
    outputs = {argument.name for argument in func._schema.arguments if argument.is_out}
    return {name: value for name, value in kwargs.items() if name not in outputs}


def _results(func: OpOverload[..., Any], args: Any, kwargs: dict[str, Any], returned: Any) -> Any:
    """The results of a call, and the arguments that it writes but does not return, given outputs first."""
    schema = func._schema
    given = dict(zip((argument.name for argument in schema.arguments), args, strict=False)) | kwargs
    written = [argument for argument in schema.arguments if argument.alias_info and argument.alias_info.is_write]
    named = [given.get(argument.name) for argument in sorted(written, key=lambda argument: not argument.is_out)]
    results = list(leaves(returned))
    return [results, [leaf for leaf in leaves(named) if not any(leaf is result for result in results)]]


def _copied(leaf: Any) -> Any:
    """A copy of a tensor, made before a call that may write to it; with the whole storage if a kernel may read that."""
    if not isinstance(leaf, Tensor):
        return leaf
    values = leaf.resolve_conj()
    if values.is_neg():  # of an overload that looks at the sign itself
        return torch._neg_view(torch._neg_view(values).clone())
    if values.layout is not torch.strided or not (_is_part(values) or _are_strided_integers(values)):
        return values.clone()
    return _with_its_memory(values)


def _with_its_memory(values: Tensor) -> Tensor:
    return storage_of(values).clone().as_strided(values.shape, values.stride(), values.storage_offset())


def _is_part(values: Tensor) -> bool:
    """Whether it is a number at an offset, or a row in a larger storage."""
    in_row = values.dim() == 1 and values.stride(0) == 1
    return bool(values.storage_offset()) if not values.dim() else in_row and len(storage_of(values)) > len(values)


def _are_strided_integers(values: Tensor) -> bool:
    return values.dim() == 1 and values.stride(0) != 1 and values.dtype in (torch.int32, torch.int64)
