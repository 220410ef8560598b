"""Every overload that draws: distributions and certain results under many parameters, seeds, generators, gradients."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from ....registry.files import full_name
from ...judging.randomness import draws, generators_as_before
from ...model.case import Case, CaseSource
from ...model.group import GroupKey
from ...model.nested import leaves
from ...model.selection import DTYPES, Samples
from ..calls.binding import Binding
from ..calls.invocation import SchemaCall, out_arguments, overload_of, runs_a_kernel
from .case_tensors import accepts
from .derived import representative
from .forms import copied
from .random import compared, draws_for_seeds, many_draws, under_seeds
from .random_parameters import CPU, DRAWN, DRAWS, Draw, certain
from .schema import SchemaSource
from .schema_forms import functional_form

Call = Callable[..., Any]

SEEDED_DTYPES = ("float32", "float16", "bfloat16", "int64")
# Overloads whose gradient is the mask of their forward, and what is given behind the input.
MASKED: dict[str, tuple[Any, ...]] = {
    "dropout": (0.5, True),
    "native_dropout": (0.5, True),
    "feature_dropout": (0.5, True),
    "alpha_dropout": (0.5, True),
    "feature_alpha_dropout": (0.5, True),
    "rrelu": (0.1, 0.9, True),
}


# Of each overload the first call with a distribution: the one that is made with a single number as well.
ONE_OF_EACH = tuple({draw.overload: draw for draw in reversed(DRAWS) if draw.check is not certain}.values())


class SchemaRandomSource(CaseSource):
    """Each overload that torch tags as drawing from a seeded generator.

    Args:
        schemas: whose recorded calls are made under seeds.
    """

    name = "schema random"

    def __init__(self, schemas: SchemaSource) -> None:
        self._schemas = schemas

    def groups(self) -> Iterable[GroupKey]:
        """One group for each overload and dtype that there is a call for."""
        recorded = {(key.operator, key.dtype) for key in self._recorded}
        drawn_here = {(draw.overload, dtype) for draw in DRAWS for dtype in draw.dtypes if _exists(draw.overload)}
        for operator, dtype in sorted(recorded | drawn_here, key=lambda group: (group[0], DTYPES.index(group[1]))):
            yield GroupKey(self.name, operator, "", dtype, "fallback")

    def cases(self, key: GroupKey, samples: Samples) -> Iterator[Case]:
        """The recorded call under seeds and with a generator; then all parameters of the table."""
        base = replace(key, source=self._schemas.name)
        if base in self._recorded:
            recorded = [case for case in self._schemas.cases(base, Samples.DEFAULT) if not case.skipped]
            case = representative(recorded) or next(iter(recorded), None)  # a factory has no tensor
            if case is not None and accepts(case):
                yield from seeded(case)
        dtype: torch.dtype = getattr(torch, key.dtype)
        for draw in DRAWS:
            if draw.overload == key.operator and key.dtype in draw.dtypes:
                yield from cases_of_draw(draw, dtype)
        twin = functional_form(key.operator)
        for draw in ONE_OF_EACH:
            if full_name(draw.overload) == twin and key.dtype in draw.dtypes:
                yield from into_an_out(draw, dtype, key.operator)
        if key.operator in MASKED and dtype.is_floating_point:
            call = mask_of_the_gradient(SchemaCall(full_name(key.operator)), MASKED[key.operator])
            yield Case(call, (-torch.ones(32, 4, 3, dtype=dtype),), title="the gradient's mask")

    @cached_property
    def _recorded(self) -> frozenset[GroupKey]:
        return frozenset(
            key for key in self._schemas.groups() if key.dtype in SEEDED_DTYPES and draws_by_itself(key.operator)
        )


def draws_by_itself(operator: str) -> bool:
    """Whether an overload draws, and is not the generated out= form of another, which it calls."""
    name = full_name(operator)
    overload = overload_of(name)
    if not draws(overload):
        return False
    writes = any(argument.is_out for argument in overload._schema.arguments)
    return runs_a_kernel(name) or not writes


def _exists(overload: str) -> bool:
    name, _, rest = overload.partition(".")
    return hasattr(getattr(torch.ops.aten, name, None), rest or "default")


def seeded(case: Case) -> Iterator[Case]:
    """A recorded call under seeds, and with a generator where it takes one."""
    yield replace(case, call=under_seeds(case.call), title="under seeds")
    name = case.call.__name__
    if any(argument.name == "generator" for argument in overload_of(name)._schema.arguments):
        yield replace(case, call=with_generator(case.call), title="generator=")


def cases_of_draw(draw: Draw, dtype: torch.dtype) -> Iterator[Case]:
    """Cases about a random call: certain properties, its distribution, and that of calls that draw one number each."""
    call = SchemaCall(full_name(draw.overload))
    kwargs = {"dtype": dtype, "device": CPU} if draw.factory else {}
    case = Case(call, draw.make(dtype, DRAWN), kwargs)
    if not accepts(case):
        return
    if draw.check is not None:
        check = draw.check
        yield replace(case, call=certainly(call, check), title=f"certain: {draw.title}")
    if draw.check is certain:
        return
    yield replace(case, call=many_draws(call), distribution=True, title=f"distribution: {draw.title}")
    one_draw = replace(case, args=draw.make(dtype, 1))
    if dtype is torch.float32 and draw in ONE_OF_EACH and accepts(one_draw):
        yield replace(one_draw, call=many_draws(call), distribution=True, title=f"one at a time: {draw.title}")


def into_an_out(draw: Draw, dtype: torch.dtype, operator: str) -> Iterator[Case]:
    """The distribution of a call whose result is an out= tensor, another one for each call."""
    (name,) = out_arguments(full_name(operator))
    call = SchemaCall(full_name(operator))

    def answer(*args: Any, **kwargs: Any) -> Any:
        return call(*args, **kwargs | {name: torch.empty_like(kwargs[name])})

    answer.__name__ = call.__name__
    args = draw.make(dtype, DRAWN)
    shape = next((arg.shape for arg in args if isinstance(arg, Tensor)), torch.Size([0]))
    case = Case(answer, args, {name: torch.zeros(shape, dtype=dtype)})
    if accepts(case):
        yield replace(case, call=many_draws(answer), distribution=True, title=f"distribution in out=: {draw.title}")


def certainly(call: Call, check: Callable[[Tensor], Any]) -> Call:
    """A call that returns `check` of the first result, and its strides; the generator's state does not change."""

    def answer(*args: Any, **kwargs: Any) -> Any:
        with generators_as_before():
            copies, named = copied(args), copied(kwargs)
            result = next(leaf for leaf in leaves(call(*copies, **named)) if isinstance(leaf, Tensor))
        return check(result), list(result.stride())

    answer.__name__ = "certain"
    return answer


def with_generator(call: Call) -> Call:
    """Returns a text: whether only the generator's seed decides the numbers, and the global one does not change."""
    name = call.__name__

    def answer(*args: Any, **kwargs: Any) -> Any:
        device = _device_of((args, kwargs))
        own = torch.Generator(device)

        def draw(generator: torch.Generator | None) -> list[Tensor]:
            given_args, given_kwargs = Binding(name, args, kwargs).with_others({"generator": generator})
            return draws_for_seeds(call, given_args, given_kwargs)

        with generators_as_before():
            torch.manual_seed(1)
            untouched = _state_of(device)
            own.manual_seed(7)
            first, following = draw(own), draw(own)
            as_it_was = torch.equal(untouched, _state_of(device))
            torch.manual_seed(2)
            own.manual_seed(7)
            again = draw(own)
            own.manual_seed(8)
            other = draw(own)
            torch.manual_seed(7)
            drawn_globally = draw(None)
            torch.manual_seed(3)
            elsewhere = draw(None)
        return (
            f"its seed gives {compared(first, again)} numbers again",
            f"another seed gives {compared(first, other)} numbers",
            f"further calls give {compared(first, following)} numbers",
            f"the global generator is {'as it was' if as_it_was else 'changed'}",
            f"without it, two global seeds give {compared(drawn_globally, elsewhere)} numbers",
        )

    answer.__name__ = "generator="
    return answer


def mask_of_the_gradient(call: Call, parameters: tuple[Any, ...]) -> Call:
    """Says in words whether the elements that have no gradient are those that the forward dropped.

    All inputs are -1: what is kept has one value, and what is dropped another; where the slope is drawn, the result is
    the gradient times the input.
    """

    def answer(x: Tensor) -> str:
        given = x.detach().requires_grad_()
        with generators_as_before():
            result = next(leaf for leaf in leaves(call(given, *parameters)) if isinstance(leaf, Tensor))
            (gradient,) = torch.autograd.grad(result.sum(), given)
        values, slopes = result.detach().cpu(), gradient.cpu()
        if torch.allclose(values, -slopes):
            return "the gradient is the forward's"
        kept, dropped = values[slopes != 0], values[slopes == 0]
        alike = all(part.numel() and bool((part == part[0]).all()) for part in (kept, dropped))
        return "the gradient is the forward's" if alike and kept[0] != dropped[0] else "the gradient has another mask"

    answer.__name__ = "the gradient's mask"
    return answer


def _device_of(tree: Any) -> torch.device:
    devices = [leaf if isinstance(leaf, torch.device) else leaf.device for leaf in leaves(tree) if _has_device(leaf)]
    return next((device for device in devices if device.type != "cpu"), torch.empty(0).device)


def _has_device(leaf: Any) -> bool:
    return isinstance(leaf, Tensor | torch.device)


def _state_of(device: torch.device) -> Tensor:
    state: Tensor = torch.mps.get_rng_state() if device.type == "mps" else torch.default_generator.get_state()
    return state.clone()
