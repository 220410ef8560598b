"""Varies overloads that are only called by name: out= and in-place forms, backwards and internal parts of operators.

Other sources vary OpInfos and recorded calls of functional overloads. The forms that write, and the overloads that only
other operators call, have their own kernels, which may be wrong when the functional kernel is right.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, islice

import torch
from torch import Tensor

from ....registry.files import full_name
from ...model.case import Case
from ...model.group import GroupKey
from ..calls.invocation import SchemaCall, out_arguments, overload_of, runs_a_kernel
from .case_tensors import strided_positions, tensors_of, with_tensors, written_positions
from .derived import BaseGroup, Factor, first_variation_of
from .forms import under
from .layouts import Layout, conjugate_view, expanded, negative_view, offset, padded_rows, stepped, transposed
from .many_rows import with_many_rows
from .mixed_dtypes import MOST_TENSORS as FIRST_MIXED
from .mixed_dtypes import each_as_scalar_tensor, each_in_others
from .number_ranges import (
    far_from_zero,
    near_zero,
    partly_near_zero,
    results_on_cpu,
    with_both_signs,
    with_distinguishable_results,
    with_unequal_elements,
)
from .schema_sizes import grown, in_many_dimensions_of, in_one_shape, in_sizes, is_elementwise, with_one_element
from .shared_storage import in_one_memory
from .sizes import ALIAS_OF_NOTHING, DECOMPOSITIONS, LONGEST, UNCHECKED, draws, is_a_part, is_any_of, largest_size
from .special_values import ValuePlan, with_special_values
from .tensor_layouts import KERNEL_DIES, alone_in, filled

# Of so many tensors the layouts of each are tried: a normalisation has five and more.
MOST_TENSORS = 6
# Of so many cases one gives empty out tensors, which the overload has to resize: not in step with the six layouts.
RESIZED = 5


def negative_complex_view(tensor: Tensor) -> Tensor | None:
    """Complex values with a lazy negation, as in the imaginary part of a conjugate."""
    return torch._neg_view(-tensor) if tensor.is_complex() else None


@dataclass(frozen=True)
class DtypeVariations:
    """The variations of calls in one dtype.

    Attributes:
        values: the classes of special values.
        layouts: of each tensor alone.
        sizes: how many sizes beside the empty one: 0 for no size at all.
        mixed: whether tensors get other dtypes, with dimensions and without.
        near_zero: whether floating tensors get small values.
        together: whether its tensors share one storage, and equal ones are one tensor.
    """

    values: ValuePlan
    layouts: tuple[Layout, ...]
    sizes: int = 0
    mixed: bool = False
    near_zero: bool = False
    together: bool = False


DTYPE_VARIATIONS: dict[str, DtypeVariations] = {
    "float32": DtypeVariations(
        ValuePlan(("nan", "infinities", "signed zeros", "negative zeros", "largest finite"), ("nan middle",)),
        (transposed, stepped, offset, expanded, negative_view, padded_rows),
        sizes=2,
        mixed=True,
        near_zero=True,
        together=True,
    ),
    "float16": DtypeVariations(ValuePlan(("nan", "infinities", "signed zeros")), (stepped,), sizes=1),
    "bfloat16": DtypeVariations(ValuePlan(("nan",)), (transposed, expanded), sizes=1),
    "int64": DtypeVariations(
        ValuePlan(("extreme integers", "negative", "beyond 2^24", "beyond 2^53", "zeros"), ("beyond 2^53",)),
        (transposed, stepped, offset, expanded, padded_rows),
        sizes=1,
        mixed=True,
        together=True,
    ),
    "int8": DtypeVariations(ValuePlan(("extreme integers",)), (expanded,)),
    "uint8": DtypeVariations(ValuePlan(("extreme integers",)), (transposed,)),
    "bool": DtypeVariations(ValuePlan(("all true",)), (stepped,), sizes=1, mixed=True),
    "complex64": DtypeVariations(
        ValuePlan(("nan", "zeros")),
        (conjugate_view, negative_complex_view, stepped, transposed, expanded),
        sizes=1,
        mixed=True,
        together=True,
    ),
}
# They allocate their first argument again, or ignore its values.
WITHOUT_VALUES = ("resize*", "_resize*", "set_*", "empty*", "new_empty*")
# Their CPU kernels do not check sizes, and write out of bounds if the tensors do not fit each other.
UNCHECKED_OPERATORS = (
    *("_cummax_helper", "_cummin_helper", "_cholesky_solve_helper", "adaptive_max_pool3d_backward"),
    *("_compute_linear_combination", "_ctc_loss_backward", "_stack"),
)
# No other operator computes with their dtypes.
EIGHT_BIT_OPERATORS = ("_scaled_mm*",)
# The CPU does not fill a tensor that they resize, or chooses its strides.
NOT_RESIZED = ("*batch_norm*", *DECOMPOSITIONS)
# The elements that a part has at least when its batch is repeated: of half precision the rows alone count.
ELEMENTS_IN_BATCHES = {"float32": LONGEST, "float16": 1, "bfloat16": 1}
# In other sizes their CPU kernels divide by zero, read uninitialised memory, or return their input itself.
FIXED_SIZE_OPERATORS = ("_weight_norm_interface", "native_channel_shuffle", "multilabel_margin_loss_forward")


def _applies(group: BaseGroup) -> bool:
    """Each such overload with its own kernel, in one dtype of each kind."""
    return group.key.dtype in DTYPE_VARIATIONS and is_varied(group.key.operator)


def _variations(group: BaseGroup, cases: Sequence[Case]) -> Iterator[Case]:
    """The representative call varied as a functional one is, and called as the overload is."""
    key = group.key
    functional = functional_form(key.operator)
    called = [case for case in cases if not case.skipped and isinstance(case.call, SchemaCall)]
    plain = called if functional is None else [without_outs(case, key.operator, functional) for case in called]
    dtype = getattr(torch, key.dtype)
    of_dtype = [case for case in plain if any(tensor.dtype is dtype for tensor in tensors_of(case))]
    for recorded_case in filled(of_dtype or plain):
        enlarged = recorded_case if is_any_of(key.operator, FIXED_SIZE_OPERATORS) else grown(recorded_case)
        case = with_distinguishable_results(with_both_signs(with_unequal_elements(enlarged)))
        resizes = not is_any_of(key.operator, NOT_RESIZED) and contiguous_results(case)
        variants = chain(
            variations(key, case), batches(key, of_dtype), requiring_gradients(key, case), rare_variations(key, case)
        )
        for number, varied in enumerate(variants):
            sure = replace(varied, differentiable=False, errors_count=True, elementwise=False)
            resized = resizes and number % RESIZED == RESIZED - 1
            own = sure if functional is None else with_outs(sure, key.operator, case, resized=resized)
            yield without_graph(own) if requires_gradient(own) else own


# The representative call of each overload that is called by name alone, varied as a functional one is.
SCHEMA_FORM_FACTOR = Factor("forms", _variations, _applies, choose=lambda group, cases: list(cases))


def is_varied(operator: str) -> bool:
    """Whether an overload has its own kernel, and no calls of users that are varied already."""
    name = full_name(operator)
    if (
        operator in KERNEL_DIES
        or is_any_of(operator, (*UNCHECKED, *WITHOUT_VALUES, *UNCHECKED_OPERATORS, *EIGHT_BIT_OPERATORS))
        or draws(operator)
    ):
        return False
    if not SchemaCall(name).needs_torch_alone or not runs_a_kernel(name):
        return False
    if out_arguments(name):
        return functional_form(operator) is not None
    return SchemaCall(name).writes or is_a_part(operator)


def functional_form(operator: str) -> str | None:
    """The overload with the same arguments except the out= ones, or None if there is none."""
    name = full_name(operator)
    outs = out_arguments(name)
    if not outs:
        return None
    wanted = [argument for argument in _arguments(name) if argument[0] not in outs]
    packet = name.partition(".")[0]
    namespace, _, bare = packet.partition("::")
    for overload in getattr(getattr(torch.ops, namespace), bare).overloads():
        name_of_form = packet if overload == "default" else f"{packet}.{overload}"
        if _arguments(name_of_form) == wanted:
            return name_of_form
    return None


def _arguments(name: str) -> list[tuple[str, str]]:
    return [(argument.name, str(argument.type)) for argument in overload_of(name)._schema.arguments]


def without_outs(case: Case, operator: str, functional: str) -> Case:
    """A call with out= as one of the functional form."""
    outs = out_arguments(full_name(operator))
    kwargs = {name: value for name, value in case.kwargs.items() if name not in outs}
    return replace(case, call=SchemaCall(functional), kwargs=kwargs)


def with_outs(case: Case, operator: str, unvaried: Case, *, resized: bool) -> Case:
    """A functional call as one with fresh out tensors of the CPU's dtypes and shapes, or empty ones.

    Of what the CPU refuses the outs are those of the call that was varied.
    """
    results = results_on_cpu(case) or results_on_cpu(unvaried) or []
    names = out_arguments(full_name(operator))
    outs = {
        name: torch.ones(0 if resized else result.shape, dtype=result.dtype)
        for name, result in zip(names, results, strict=False)
    }
    title = f"{case.title}, out= resized" if resized else case.title
    return replace(case, call=SchemaCall(full_name(operator)), kwargs={**case.kwargs, **outs}, form="out=", title=title)


def contiguous_results(case: Case) -> bool:
    """Whether the CPU makes contiguous results: a resized tensor need not have other strides."""
    return all(result.is_contiguous() for result in results_on_cpu(case) or [])


def variations(key: GroupKey, case: Case) -> Iterator[Case]:
    """The variations of one call that its dtype has."""
    plan = DTYPE_VARIATIONS[key.dtype]
    written = set(written_positions(case))
    yield from with_special_values(case, key.operator, key.dtype, plan.values)
    if plan.near_zero:
        yield from near_zero(case)
        yield from partly_near_zero(case)
        yield from far_from_zero(case, key.operator)
    turn = first_variation_of(key)
    yield from in_layouts(case, plan.layouts, written)
    if plan.mixed and not is_any_of(key.operator, DECOMPOSITIONS):
        yield from each_in_others(case, 2, turn, but=sorted(written))
        yield from islice(each_in_others(case, 1, turn, but=[*range(FIRST_MIXED), *written]), MOST_TENSORS)
        if is_elementwise(case):
            for varied in each_as_scalar_tensor(replace(case, elementwise=True), turn):
                yield replace(varied, elementwise=False)
    if plan.sizes and not is_any_of(key.operator, FIXED_SIZE_OPERATORS):
        resized = in_one_shape(case) if is_a_part(key.operator) else in_sizes(case, key.operator)
        yield from islice(resized, 1 + plan.sizes)
        if is_elementwise(case) or (len(tensors_of(case)) == 1 and not is_a_part(key.operator)):
            yield from with_one_element(case, turn, written)
    if plan.sizes > 1 and not is_a_part(key.operator):
        yield from islice(in_many_dimensions_of(case, checks=True), 1)
    yield from with_padding(case)
    if plan.together:
        regular = is_elementwise(case) and (not written or may_overlap(key.operator))
        yield from map(with_distinguishable_results, in_one_memory(case, sorted(written), elementwise=regular))


def rare_variations(key: GroupKey, case: Case) -> Iterator[Case]:
    """Infinities beside numbers whose results may be infinite, and the dimensions that a call is not in already."""
    plan = DTYPE_VARIATIONS[key.dtype]
    if plan.sizes > 1:
        yield from with_special_values(case, key.operator, key.dtype, ValuePlan(("infinities, largest finite",)))
        if not is_any_of(key.operator, FIXED_SIZE_OPERATORS):
            part = is_a_part(key.operator)
            yield from islice(in_many_dimensions_of(case, checks=not part), 0 if part else 1, None)


def may_overlap(operator: str) -> bool:
    """Whether what an overload writes may be what it reads: torch lets elementwise operators do that."""
    return torch.Tag.pointwise in overload_of(full_name(operator)).tags


def batches(key: GroupKey, cases: Sequence[Case]) -> Iterator[Case]:
    """A part's batch repeated in the floating dtypes; of what takes long for many rows none."""
    costly = largest_size(key.operator) < LONGEST or is_any_of(key.operator, ALIAS_OF_NOTHING)
    if key.dtype in ELEMENTS_IN_BATCHES and is_a_part(key.operator) and not costly:
        yield from with_many_rows(cases, ELEMENTS_IN_BATCHES[key.dtype])


def requiring_gradients(key: GroupKey, case: Case) -> Iterator[Case]:
    """A call whose floating tensors require gradients, as inside `no_grad`: kernels may take another path then."""
    if DTYPE_VARIATIONS[key.dtype].near_zero:
        wanting = {i: tensor.detach().clone() for i, tensor in enumerate(tensors_of(case)) if has_gradient(tensor)}
        if wanting:
            yield with_tensors(case, {i: t.requires_grad_() for i, t in wanting.items()}, "wanting gradients")


def has_gradient(tensor: Tensor) -> bool:
    """Whether a tensor can require a gradient and is not sparse."""
    return tensor.layout is torch.strided and (tensor.is_floating_point() or tensor.is_complex())


def requires_gradient(case: Case) -> bool:
    """Whether a tensor of a case requires a gradient."""
    return any(tensor.requires_grad for tensor in tensors_of(case))


def without_graph(case: Case) -> Case:
    """The call inside of `no_grad`, under its own name."""
    call = under(torch.no_grad, case.call)
    call.__name__ = case.call.__name__
    return replace(case, call=call)


def in_layouts(case: Case, layouts: Sequence[Layout], written: Collection[int]) -> Iterator[Case]:
    """Each tensor alone in each layout; written tensors do not overlap themselves."""
    for position in strided_positions(case)[:MOST_TENSORS]:
        for layout in layouts:
            varied = None if layout is expanded and position in written else alone_in(case, position, layout)
            if varied is not None:
                yield varied


def with_padding(case: Case) -> Iterator[Case]:
    """Calls whose padding index is 0, and the first of the call's indices."""
    assert isinstance(case.call, SchemaCall)
    names = [name for name, _ in _arguments(case.call.__name__)]
    if not {"padding_idx", "indices"} <= set(names):
        return
    place, of_indices = names.index("padding_idx"), names.index("indices")
    if place >= len(case.args) or not case.args[of_indices].numel():
        return
    for padding in dict.fromkeys((0, int(case.args[of_indices].flatten()[0]))):
        args = (*case.args[:place], padding, *case.args[place + 1 :])
        yield replace(case, args=args, title=f"padding index {padding}")
