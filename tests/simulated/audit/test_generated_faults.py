"""Faults by a seed: the same for the same seed, each seen in a call, and calls made so that conditions hold."""

from __future__ import annotations

from random import Random

import pytest
import torch

from mpsmith.audit.cases.calls.invocation import overload_of
from mpsmith.audit.judging.transfer import move
from mpsmith.audit.releases.surface.profiles import coverage_profile
from mpsmith.audit.self_test.argument_proposals import argument_and_tensor, two_arguments
from mpsmith.audit.self_test.classes import FAULT_CLASSES, Scenario, chosen
from mpsmith.audit.self_test.demonstration import BaseCalls, demonstrate
from mpsmith.audit.self_test.generation import EVERYWHERE, class_of, generate
from mpsmith.audit.self_test.makers import MAKERS
from mpsmith.audit.self_test.report_proposals import reported
from mpsmith.audit.self_test.schemas import facts_of
from mpsmith.errors import MpsmithError
from mpsmith.simulator.device import kernel_plan
from mpsmith.simulator.device.faults import Fault
from mpsmith.simulator.device.faults.call import FaultMemory, FaultyCall
from mpsmith.simulator.device.faults.conditions import CONDITIONS

pytestmark = pytest.mark.usefixtures("no_faults")


@pytest.fixture(scope="module")
def calls() -> BaseCalls:
    return BaseCalls()


@pytest.fixture(scope="module")
def overloads() -> list[str]:
    return sorted(f"aten::{name}" for name in kernel_plan.plan(coverage_profile(None)).native)


def test_a_seed_gives_the_same_faults_and_another_seed_others(calls: BaseCalls, overloads: list[str]) -> None:
    classes = chosen(["wrong shape", "at an offset", "a flag ignored"])
    first, again, other = (
        [str(made.fault) for n in range(4) if (made := generate(n, seed, overloads, calls, classes))]
        for seed in (3, 3, 4)
    )
    assert len(first) == 4
    assert first == again
    assert not set(first) & set(other)


def test_each_class_comes_once_before_any_comes_again() -> None:
    count = len(FAULT_CLASSES)
    turns = [[class_of(n, 3, FAULT_CLASSES).name for n in range(t * count, (t + 1) * count)] for t in range(2)]
    assert set(turns[0]) == set(turns[1]) == {fault_class.name for fault_class in FAULT_CLASSES}
    assert turns[0] != turns[1]


def test_the_classes_are_many_and_named_once() -> None:
    names = [fault_class.name for fault_class in FAULT_CLASSES]
    assert len(names) == len(set(names)) >= 80
    assert {fault_class.scenario for fault_class in FAULT_CLASSES} == set(Scenario)


def test_classes_are_chosen_by_words_of_their_names() -> None:
    assert [fault_class.name for fault_class in chosen(["leaks", "hangs"])] == ["leaks", "hangs"]
    assert chosen(None) == FAULT_CLASSES
    with pytest.raises(MpsmithError, match="no class of faults has 'leeks'"):
        chosen(["leeks"])


@pytest.mark.parametrize(
    "name",
    [
        "NaN in one argument",
        "a view is a copy",
        "one operand alone stepped",
        "random: generator= ignored",
        "leaks",
        "two arguments together",
        "an argument and a tensor together",
        "a public report",
    ],
)
def test_a_generated_fault_has_a_call_that_shows_it(name: str, calls: BaseCalls, overloads: list[str]) -> None:
    made = generate(0, 5, overloads, calls, chosen([name]))
    assert made is not None
    assert made.class_name == name
    assert made.trigger.call
    assert made.packet not in EVERYWHERE


@pytest.mark.parametrize(
    ("text", "scenario", "is_seen"),
    [
        ("aten::neg: values", Scenario.ONE_CALL, True),
        ("aten::neg: values when dtype(self, float16) and dtype(self, float32)", Scenario.ONE_CALL, False),
        ("aten::neg: nan_as_zero(self)", Scenario.ONE_CALL, False),  # without a NaN nothing differs
        ("aten::neg: nan_as_zero(self) when nan(self)", Scenario.ONE_CALL, True),
        ("aten::neg: values when repeated", Scenario.ONE_CALL, False),
        ("aten::neg: cached", Scenario.OTHER_VALUES, True),
        ("aten::neg: values when every(100)", Scenario.MANY_CALLS, True),
        ("aten::neg: values when other_thread", Scenario.TWO_THREADS, True),
        ("aten::neg: aborts when offset(self)", Scenario.ENDS, True),
        ("aten::neg: leaks", Scenario.MEMORY, True),
        ("aten::neg: values", Scenario.MEMORY, False),
        ("aten::neg: other_error", Scenario.ONE_CALL, False),
        ("aten::gather: other_error", Scenario.REFUSED, True),
        ("aten::add.Tensor: previous_number(alpha) when near_previous(alpha)", Scenario.NEAR_NUMBER, True),
        ("aten::uniform_: own_seed", Scenario.SEED, True),
        ("aten::uniform_: same_draws", Scenario.SEED, True),
        ("aten::uniform_: larger_of_two", Scenario.DRAWS, True),
        ("aten::uniform_: own_seed", Scenario.DRAWS, False),
        ("aten::uniform_: takes(generator, None)", Scenario.GENERATOR, True),
    ],
)
def test_only_detectable_faults_have_a_call_that_shows_them(
    text: str, scenario: Scenario, is_seen: bool, calls: BaseCalls
) -> None:
    assert (demonstrate(Fault.parse(text), scenario, calls, Random(1)) is not None) is is_seen


MADE = [
    "mixed(self, other)",
    "contiguous(self)",
    "non_contiguous(self)",
    "transposed(self)",
    "stepped(self)",
    "inner_strided(self)",
    "offset(self)",
    "expanded(self)",
    "shared(self, other)",
    "same(self, other)",
    "empty(self)",
    "empty_dimension(self, 1)",
    "one_element(self)",
    "no_dimension(self)",
    "above(self, 65536)",
    "rows_above(self, 1024)",
    "longer(self, 1024)",
    "dimensions(self, 5)",
    "nan(self)",
    "infinite(self)",
    "negative_zero(self)",
    "near_zero(self, 0.00001)",
    "large(self, 90)",
    "far_mean(self)",
    "is(alpha, 3)",
    "negative(alpha)",
    "fractional(alpha)",
    "follows_gradients(self)",
    "without_gradients",
]


@pytest.mark.parametrize("text", MADE)
def test_a_maker_makes_its_condition_hold_and_not_before(text: str) -> None:
    term = Fault.parse(f"aten::add.Tensor: values when {text}").conditions[0]
    overload = overload_of("aten::add.Tensor")
    torch.manual_seed(1)
    plain = {"self": torch.rand(3, 4), "other": torch.rand(3, 4), "alpha": 1}

    def holds(arguments: dict[str, object]) -> bool:
        ((moved,), _) = move((arguments,), {}, "mps")
        return CONDITIONS[term.name](FaultyCall(overload, moved, lambda: None, FaultMemory()), *term.arguments)

    made = dict(plain)
    assert MAKERS[term.name](made, Random(2), *term.arguments)
    assert holds(made)
    assert holds(plain) is (term.name in ("contiguous", "without_gradients"))


def test_paired_arguments_differ_and_affect_the_result() -> None:
    made = [
        two_arguments(facts_of(name), Random(n)) for n in range(40) for name in ("aten::mean.dim", "aten::add.Tensor")
    ]
    named = [[condition.arguments[0] for condition in proposal[1]] for proposal in made if proposal is not None]
    assert {name for pair in named for name in pair} == {"dim", "keepdim", "dtype"}
    assert all(len(set(pair)) == 2 for pair in named)
    assert argument_and_tensor(facts_of("aten::neg"), Random(1)) is None
    assert two_arguments(facts_of("aten::uniform_"), Random(1)) is None


def test_a_fault_of_a_report_has_its_dtype_and_layout() -> None:
    made = {
        str(Fault("aten::mm", *proposal)) for n in range(40) if (proposal := reported(facts_of("aten::mm"), Random(n)))
    }
    assert "aten::mm: values when dtype(self, complex64) and transposed(self) and conjugate(self)" in made
    assert reported(facts_of("aten::hardtanh"), Random(1)) is None


def test_facts_of_a_schema() -> None:
    facts = facts_of("aten::_fused_adam_")
    assert "exp_avgs" in facts.written
    assert "amsgrad" in facts.flags
    assert facts_of("aten::native_layer_norm_backward").masks == ("output_mask",)
    assert facts_of("aten::exp.out").outs == ("out",)
    assert facts_of("aten::unfold").view
    assert facts_of("aten::uniform_").random
    assert facts_of("aten::exp").pointwise
    assert facts_of("aten::addmv.out").numbers == ("beta", "alpha")
