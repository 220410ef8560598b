"""The classes of faults, taken from user reports about real backends."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from ...errors import MpsmithError
from .argument_proposals import (
    argument_and_tensor,
    choice,
    flag,
    ignored_by_zero,
    index_out_of_range,
    near_number,
    negative_number,
    number,
    optional_tensor,
    optional_value,
    random_end,
    random_generator,
    random_number,
    two_arguments,
)
from .proposal import FLOATS, INTEGERS, Propose, term, wrong_values, wrongly
from .report_proposals import reported
from .result_proposals import (
    aliasing,
    always,
    ends_process,
    exponentials,
    fallback,
    in_half,
    keepdim,
    memory,
    metadata,
    near_tolerance,
    near_zero,
    outside,
    random,
    rarely,
    reduced_in_half,
    strides,
    variance,
    views,
)
from .tensor_proposals import (
    backward_of,
    integers,
    not_updated,
    of_input,
    one_dtype,
    out_of_another_dtype,
    out_target,
    shared_storage,
    sized,
    special,
    subset_of_gradients,
    target,
    two_inputs,
    wrong_backward,
)


class Scenario(str, Enum):
    """How a call must be made to show the fault."""

    ONE_CALL = "one call"
    OTHER_VALUES = "a second call with other values of the same sizes"
    NEAR_NUMBER = "a second call with a number slightly different"
    MANY_CALLS = "250 calls"
    TWO_THREADS = "a second call with other values, from another thread"
    DRAWS = "the distribution of many draws"
    SEED = "one seed twice, and another"
    GENERATOR = "one generator= twice"
    MEMORY = "the memory in use"
    ENDS = "the process"
    REFUSED = "a call that the CPU refuses"


@dataclass(frozen=True)
class FaultClass:
    """One class of faults.

    Attributes:
        name: the name in reports.
        propose: proposes such a fault for an overload, or returns None.
        scenario: how calls show the fault.
    """

    name: str
    propose: Propose
    scenario: Scenario = Scenario.ONE_CALL


FAULT_CLASSES: tuple[FaultClass, ...] = (
    FaultClass("a written argument is not updated", not_updated),
    FaultClass("NaN in one argument", special("nan", "nan_as_zero@", "nan_lost", "all_nan", "zeros")),
    FaultClass("an infinity in one argument", special("infinite", "infinity_lost", "infinity_to_nan", "values")),
    FaultClass("the sign of zero", special("negative_zero", "sign_of_zero_lost")),
    FaultClass("integers beyond 2^24 through float32", integers("through_float32", 2**24)),
    FaultClass("int64 beyond 2^31 through int32", integers("through_int32", 2**31)),
    FaultClass("int64 beyond 2^53 through float64", integers("through_float64", 2**53)),
    FaultClass("extreme integers", special("extreme", "saturated", "values", "zeros")),
    FaultClass("integers that should wrap", always("saturated")),
    FaultClass(
        "empty: wrong shape, value or error", special("empty", "raises", "wrong_shape", "values", "wrong_dtype")
    ),
    FaultClass("one element", of_input(wrong_values, "one_element")),
    FaultClass("no dimension", of_input(wrong_values, "no_dimension")),
    FaultClass("above 1,024 rows", sized("rows_above", 1024)),
    FaultClass("above a size", sized("above", 65_536, 131_072)),
    FaultClass("five dimensions", sized("dimensions", 5, 6)),
    FaultClass(
        "a long dimension", sized("longer", 1024, 2048, corrupt=lambda name, rng: term("only_first", name, 1024))
    ),
    FaultClass("one operand alone transposed", of_input(wrongly, "transposed", alone=True)),
    FaultClass(
        "one operand alone at an offset", of_input(lambda n, r: term("ignores_offset", n), "offset", alone=True)
    ),
    FaultClass("one operand alone stepped", of_input(wrongly, "stepped", alone=True)),
    FaultClass("one operand alone expanded", of_input(wrongly, "expanded", alone=True)),
    FaultClass("non-contiguous", of_input(wrongly, "non_contiguous")),
    FaultClass("at an offset", of_input(wrong_values, "offset")),
    FaultClass("expanded", of_input(wrongly, "expanded")),
    FaultClass("gaps in a dimension other than the last", of_input(wrongly, "inner_strided")),
    FaultClass("two views of one storage", shared_storage),
    FaultClass("the same tensor twice", two_inputs(lambda a, b, rng: wrong_values(a, rng), "same")),
    FaultClass("mixed dtypes", two_inputs(lambda a, b, rng: wrong_values(a, rng), "mixed")),
    FaultClass("no dimension, another dtype", two_inputs(lambda a, b, r: wrong_values(a, r), "mixed", zero_dim=True)),
    FaultClass("in place on an odd target", target("transposed", "stepped", "offset", "inner_strided")),
    FaultClass("out= into an odd target", out_target("transposed", "stepped", "offset", "inner_strided")),
    FaultClass("out= of another dtype", out_of_another_dtype),
    FaultClass("gradient: wrong", wrong_backward),
    FaultClass("gradient: expanded cotangent", backward_of(wrongly, "expanded")),
    FaultClass("gradient: non-contiguous cotangent", backward_of(wrongly, "non_contiguous")),
    FaultClass("gradient: of a subset of inputs", subset_of_gradients),
    FaultClass("only without requires_grad", always("values", "zeros", when="without_gradients")),
    FaultClass("only with requires_grad", of_input(wrong_values, "follows_gradients")),
    FaultClass("a flag ignored", flag),
    FaultClass("an enumeration ignored", choice),
    FaultClass("an optional tensor", optional_tensor),
    FaultClass("an optional number", optional_value),
    FaultClass("a number ignored or truncated", number),
    FaultClass("a negative dimension", negative_number),
    FaultClass("a factor of zero with NaN", ignored_by_zero),
    FaultClass("two arguments together", two_arguments),
    FaultClass("an argument and a tensor together", argument_and_tensor),
    FaultClass("an index out of range", index_out_of_range, Scenario.REFUSED),
    FaultClass("a number near the last call's", near_number, Scenario.NEAR_NUMBER),
    FaultClass("a result cached by shape", always("cached"), Scenario.OTHER_VALUES),
    FaultClass("wrong when repeated", always("values", "last_element", when="repeated"), Scenario.OTHER_VALUES),
    FaultClass("one call in a hundred", rarely("values", "zeros"), Scenario.MANY_CALLS),
    FaultClass("from a second thread", always("values", "zeros", when="other_thread"), Scenario.TWO_THREADS),
    FaultClass("random: a parameter ignored", random_number, Scenario.DRAWS),
    FaultClass("random: a probability of 0 or 1", random_end, Scenario.DRAWS),
    FaultClass("random: another distribution", random("larger_of_two"), Scenario.DRAWS),
    FaultClass("random: generator= ignored", random_generator, Scenario.GENERATOR),
    FaultClass("random: the seed ignored", random("own_seed"), Scenario.SEED),
    FaultClass("random: the same draws", random("same_draws"), Scenario.SEED),
    FaultClass("precision: near zero", near_zero),
    FaultClass("precision: a variance that cancels", variance),
    FaultClass("precision: accumulation in half", reduced_in_half),
    FaultClass("precision: exponentials that overflow", exponentials),
    FaultClass("precision: just beyond the tolerance", near_tolerance),
    FaultClass("precision: computed in half", in_half),
    FaultClass("a view is a copy", views),
    FaultClass("wrong stride", strides),
    FaultClass("wrong shape", metadata("wrong_shape", "squeezed")),
    FaultClass("wrong dtype", metadata("wrong_dtype")),
    FaultClass("wrong keepdim", keepdim),
    FaultClass("a result in an input's memory", aliasing),
    FaultClass("changes its input", always("changes_input")),
    FaultClass("writes outside", outside),
    FaultClass("one dtype: floating", one_dtype(FLOATS)),
    FaultClass("one dtype: integers", one_dtype(INTEGERS)),
    FaultClass("one dtype: bool or complex", one_dtype(("bool", "complex64"))),
    FaultClass("half only in backward", one_dtype(("float16", "bfloat16"), backward=True)),
    FaultClass("a conjugate view", of_input(lambda n, r: term("ignores_conjugation", n), "conjugate")),
    FaultClass("a negative view", of_input(lambda n, r: term("ignores_conjugation", n), "negated")),
    FaultClass("a public report", reported),
    FaultClass("wrong values", always("values", "nan_result", "second_result")),
    FaultClass("result in freed memory", memory("freed"), Scenario.OTHER_VALUES),
    FaultClass("leaks", memory("leaks"), Scenario.MEMORY),
    FaultClass("another error", always("other_error"), Scenario.REFUSED),
    FaultClass("aborts", ends_process("aborts"), Scenario.ENDS),
    FaultClass("segfaults", ends_process("segfaults"), Scenario.ENDS),
    FaultClass("hangs", ends_process("hangs"), Scenario.ENDS),
    FaultClass("falls back unannounced", fallback, Scenario.ENDS),
)


def chosen(names: Sequence[str] | None) -> tuple[FaultClass, ...]:
    """The classes with one of these words in their names; all classes without words.

    Raises MpsmithError if no name contains a word.
    """
    if not names:
        return FAULT_CLASSES
    for name in names:
        if not any(name in fault_class.name for fault_class in FAULT_CLASSES):
            listed = "; ".join(fault_class.name for fault_class in FAULT_CLASSES)
            raise MpsmithError(f"no class of faults has {name!r} in its name (there are {listed})")
    return tuple(fault_class for fault_class in FAULT_CLASSES if any(name in fault_class.name for name in names))
