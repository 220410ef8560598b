"""What a user can see of two runs, each thing alone: hand-made runs, compared in one respect."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from torch import Tensor

from mpsmith.audit.judging.agreement import Comparison
from mpsmith.audit.judging.compare import Difference, same_bits
from mpsmith.audit.judging.execution import Execution
from mpsmith.audit.judging.reference import WideRuns
from mpsmith.audit.model.case import Case


def run(
    *outputs: Any,
    arguments: tuple[Any, ...] = (),
    keywords: dict[str, Any] | None = None,
    gradients: tuple[Tensor | None, ...] = (),
) -> Execution:
    return Execution((arguments, keywords or {}), list(outputs), [], [], list(gradients))


def comparison(case: Case | None = None, *, random: bool = False) -> Comparison:
    case = case or Case(torch.neg)
    return Comparison(case, WideRuns(case, [], lambda: None), "cpu", random=random)


def forward(actual: Execution, expected: Execution, case: Case | None = None, **options: bool) -> Any:
    result = comparison(case, **options).forward(actual, expected)
    return result.text if isinstance(result, Difference) else result


# ---- values


ONES, TWOS = torch.ones(2), torch.full((2,), 2.0)


def test_equal_runs_agree_with_no_error_at_all() -> None:
    assert forward(run(ONES, 3, "a", None, 1.5), run(ONES.clone(), 3, "a", None, 1.5)) == 0.0


def test_the_largest_error_of_all_outputs_counts() -> None:
    off = ONES + 2**-20  # a little less than a tenth of the tolerance at 1
    cpus = run(ONES, ONES.clone())
    errors = [forward(run(*outputs), cpus) for outputs in [(off, ONES), (ONES, off), (off, ONES + 2**-18)]]
    assert errors == [pytest.approx(2**-20 / 1.13e-5), pytest.approx(2**-20 / 1.13e-5), pytest.approx(2**-18 / 1.13e-5)]


@pytest.mark.parametrize(("random", "uninitialised"), [(True, ""), (False, "empty"), (True, "empty")])
def test_random_and_undefined_values_are_not_compared_but_their_shapes_are(random: bool, uninitialised: str) -> None:
    case = Case(torch.neg, uninitialised=uninitialised)
    assert forward(run(ONES, 1), run(TWOS, 2), case, random=random) == 0.0
    assert forward(run(ONES), run(torch.ones(3)), case, random=random) == "shape is [2], not [3]"
    assert forward(run(1), run(2.0), case, random=random) == "is int, not float"


@pytest.mark.parametrize(
    ("actual", "expected", "text"),
    [
        (1, ONES, "is int, not Tensor"),
        (ONES, 1, "is Tensor, not int"),
        (None, 1, "is NoneType, not int"),
        (1, True, "is int, not bool"),
        (2, 3, "is 2, not 3"),
        (False, True, "is False, not True"),
        ("a", "b", "is 'a', not 'b'"),
    ],
)
def test_plain_results_are_compared_by_type_and_value(actual: Any, expected: Any, text: str) -> None:
    assert forward(run(actual), run(expected)) == text
    assert forward(run(ONES, actual), run(ONES, expected)) == f"output 1: {text}"


@pytest.mark.parametrize("number", [1.0, 1.0 + 0j])
def test_plain_numbers_have_the_tolerance_of_float32(number: complex) -> None:
    assert forward(run(number + 1.1e-5), run(number)) == pytest.approx(1.1e-5 / 1.13e-5, rel=0.01)
    assert forward(run(number + 1.2e-5), run(number)).startswith("1 of 1 elements differ")


def test_plain_results_of_other_types_need_only_be_of_the_same_type() -> None:
    assert forward(run(torch.Size([1])), run(torch.Size([2]))) == 0.0
    assert forward(run(torch.strided), run(torch.sparse_coo)) == 0.0


def test_a_dtype_that_is_returned_is_compared_unless_either_may_come_out() -> None:
    assert forward(run(torch.float32), run(torch.float16)) == "is torch.float32, not torch.float16"
    autocast = Case(torch.neg, rounded_to=torch.float16)
    assert forward(run(torch.float32), run(torch.float16), autocast) == 0.0


def test_the_number_of_results_is_named_first() -> None:
    assert forward(run(ONES), run(ONES, ONES)) == "returns 1 values, the CPU 2"


def test_runs_without_results_agree() -> None:
    assert forward(run(), run()) == 0.0
    assert backward((), ()) == 0.0


# ---- gradients


def backward(actual: tuple[Tensor | None, ...], expected: tuple[Tensor | None, ...], **options: bool) -> Any:
    result = comparison(**options).backward(run(gradients=actual), run(gradients=expected))
    return result.text if isinstance(result, Difference) else result


def test_gradients_are_compared_with_their_position() -> None:
    assert backward((ONES, None), (ONES.clone(), None)) == 0.0
    assert backward((None, ONES), (None, TWOS)).startswith("gradient 1: 2 of 2 elements differ")
    assert backward((None, ONES), (ONES, ONES)) == "gradient 0: is absent, the CPU's present"
    assert backward((ONES,), (None,)) == "gradient 0: is present, the CPU's absent"
    assert backward((ONES,), (TWOS,), random=True) == 0.0


def test_the_largest_error_of_all_gradients_counts() -> None:
    off = ONES + 2**-20
    assert backward((off, ONES), (ONES, ONES)) == backward((ONES, off), (ONES, ONES)) == pytest.approx(2**-20 / 1.13e-5)


# ---- memory


def memory(actual: Execution, expected: Execution) -> Any:
    return forward(actual, expected, Case(torch.neg, expected.arguments[0]))


def test_an_output_shares_the_memory_of_an_input_where_the_cpus_does() -> None:
    mine, cpus = torch.ones(4), torch.ones(4)
    assert memory(run(mine[:2], arguments=(mine,)), run(cpus[:2], arguments=(cpus,))) == 0.0
    text = memory(run(ONES, mine[:2].clone(), arguments=(mine,)), run(ONES, cpus[:2], arguments=(cpus,)))
    assert text == "output 1 shares no memory with an input, unlike the CPU's"
    text = memory(run(mine[:2], arguments=(ONES, mine)), run(cpus[:2].clone(), arguments=(TWOS, cpus)))
    assert text == "output 0 shares the memory of input 1, unlike the CPU's"


def test_of_two_inputs_in_one_storage_the_first_is_named() -> None:
    mine, cpus = torch.ones(4), torch.ones(4)
    text = memory(run(mine, arguments=(ONES, mine[:2], mine)), run(cpus.clone(), arguments=(TWOS, cpus[:2], cpus)))
    assert text == "output 0 shares the memory of input 1, unlike the CPU's"


def test_outputs_after_numbers_and_sparse_tensors_are_compared() -> None:
    mine, cpus = torch.ones(4), torch.ones(4)
    for before in (3, torch.ones(2).to_sparse()):
        text = memory(run(before, mine, arguments=(mine,)), run(before, cpus.clone(), arguments=(cpus,)))
        assert text == "output 1 shares the memory of input 0, unlike the CPU's"


def test_sparse_inputs_have_no_storage_to_share() -> None:
    sparse = torch.ones(2).to_sparse()
    assert memory(run(ONES, arguments=(sparse,)), run(ONES, arguments=(sparse.clone(),))) == 0.0


@pytest.mark.parametrize(("size", "text"), [(1, 0.0), (2, "output 0, a view, has stride (2,), not (1,)")])
def test_a_view_has_the_strides_of_the_cpus_unless_it_has_one_element(size: int, text: Any) -> None:
    mine, cpus = torch.ones(4), torch.ones(4)
    assert memory(run(mine[::2][:size], arguments=(mine,)), run(cpus[:size], arguments=(cpus,))) == text


# ---- strides


def strides(output: Tensor, cpus: Tensor, *args: Tensor, elementwise: bool = True, **kwargs: Tensor) -> Any:
    mine, theirs = (
        run(torch.empty_strided(result.shape, result.stride()).fill_(1), arguments=args, keywords=kwargs)
        for result in (output, cpus)
    )
    return forward(mine, theirs, Case(torch.neg, args, kwargs, elementwise=elementwise))


ROWS = torch.ones(2, 3)
COLUMNS = torch.ones(3, 2).t()


def test_an_elementwise_operator_keeps_the_strides_of_the_cpu() -> None:
    differs = "output 0 has stride (1, 2), not (3, 1)"
    assert strides(COLUMNS, ROWS, ROWS) == differs
    assert strides(COLUMNS, ROWS) == differs
    assert strides(COLUMNS, ROWS, COLUMNS) == differs, "a transposed input is dense too"
    assert strides(ROWS, ROWS, ROWS) == 0.0
    assert strides(COLUMNS, ROWS, ROWS, elementwise=False) == 0.0


@pytest.mark.parametrize(
    "gappy",
    [torch.ones(4, 6)[:, ::2], torch.ones(2, 1).expand(2, 2), torch.ones(2, 2)[:, :1], torch.ones(3).to_sparse()],
    ids=["stepped", "expanded", "a column", "sparse"],
)
def test_strides_are_promised_for_dense_inputs_alone(gappy: Tensor) -> None:
    assert strides(COLUMNS, ROWS, gappy) == 0.0
    assert strides(COLUMNS, ROWS, ROWS, other=gappy) == 0.0


def test_a_dimension_of_one_element_has_no_stride_that_matters() -> None:
    odd = torch.ones(2, 3).as_strided((2, 1, 3), (3, 77, 1))
    assert strides(odd, torch.ones(2, 1, 3), torch.ones(2, 1, 3)) == 0.0
    assert strides(COLUMNS, ROWS, odd) == "output 0 has stride (1, 2), not (3, 1)", "such an input is dense"


def test_an_empty_output_has_no_strides_that_matter() -> None:
    assert strides(torch.empty(0, 3).as_strided((0, 3), (1, 5)), torch.empty(0, 3), ROWS) == 0.0


def test_a_pair_is_stepped_along() -> None:
    """Two elements are enough for a stride."""
    assert strides(torch.ones(2, 2).t(), torch.ones(2, 2), ROWS) == "output 0 has stride (1, 2), not (2, 1)"
    assert strides(COLUMNS, ROWS, torch.ones(4)[::2]) == 0.0, "two elements with a gap are not dense"


# ---- inputs


def after(mine: Tensor, cpus: Tensor, original: Tensor, **options: Any) -> Any:
    """What is said of the second of two arguments, of which the calls left `mine` and `cpus`."""
    case = Case(torch.neg, (ONES, original), **options.pop("of_case", {}))
    expected = run(arguments=(ONES, cpus))
    expected.versions = [ONES._version, cpus._version]  # the call has announced no write
    return forward(run(arguments=(ONES, mine)), expected, case, **options)


CHANGED = "input 1 was changed, which the CPU leaves alone"


def test_an_input_that_the_cpu_leaves_alone_is_left_alone_to_the_bit() -> None:
    assert after(ONES.clone(), ONES.clone(), ONES) == 0.0
    assert after(TWOS.clone(), ONES.clone(), ONES) == CHANGED
    assert after(ONES + 2**-23, ONES.clone(), ONES) == CHANGED


def test_an_input_that_the_cpu_changes_is_changed_alike() -> None:
    assert after(TWOS.clone(), TWOS.clone(), ONES) == 0.0
    assert after(TWOS + 2**-21, TWOS.clone(), ONES) == pytest.approx(2**-21 / (2 * 1.3e-6 + 1e-5), rel=1e-3)
    unlike = "input 1 after the call: 2 of 2 elements differ; at [0]: 1.0, CPU 2.0, float64 2.0"
    assert after(ONES.clone(), TWOS.clone(), ONES) == unlike


def test_an_input_that_is_written_with_random_or_undefined_values_may_hold_anything() -> None:
    written = ONES.clone()
    assert after(TWOS.clone(), written, ONES, random=True) == CHANGED, "it was not written"
    assert after(TWOS.clone(), TWOS.clone(), ONES, random=True) == 0.0
    case = Case(torch.neg, (ONES,), uninitialised="empty")
    runs = run(arguments=(TWOS.clone(),)), run(arguments=(written,))
    runs[1].versions = [written._version]
    assert forward(*runs, case) == "input 0 was changed, which the CPU leaves alone"
    written.fill_(1)  # with what it held, by chance
    assert forward(*runs, case) == 0.0


@pytest.mark.parametrize("random", [False, True])
def test_the_metadata_of_an_input_are_those_of_the_cpus(random: bool) -> None:
    def change(mine: Tensor, cpus: Tensor, original: Tensor = ONES) -> Any:
        return after(mine, cpus, original, random=random)

    square = torch.ones(2, 2)
    assert change(torch.ones(3), torch.ones(2)) == "input 1 has shape [3] after the call, not [2]"
    assert change(ONES.double(), ONES.clone()) == "input 1 has dtype torch.float64 after the call, not torch.float32"
    assert change(ONES.to_sparse(), ONES.clone()).startswith("input 1 has layout torch.sparse_coo after the call, not")
    assert change(ONES.clone().requires_grad_(), ONES.clone()) == "input 1 requires a gradient after the call"
    assert change(ONES.clone(), ONES.clone().requires_grad_()) == "input 1 does not require a gradient after the call"
    assert change(square.t(), square.clone(), square) == "input 1 has stride (1, 2) after the call, not (2, 1)"
    two = torch.ones(4)
    assert change(two[1:3], two[:2].clone().set_(torch.ones(4)[:2]), two[:2]) == (
        "input 1 begins at element 1 after the call, not 0"
    )


def test_an_input_that_is_resized_may_have_any_strides() -> None:
    small = torch.ones(1)
    assert after(torch.ones(2, 3).t().contiguous().t(), torch.ones(2, 3), small) == 0.0


def test_host_arguments_are_not_compared() -> None:
    case = Case(torch.neg, (ONES,))
    assert forward(run(arguments=(ONES,)), run(arguments=(TWOS,)), case) == 0.0


def test_an_input_that_is_returned_is_compared_once() -> None:
    mine, cpus = ONES + 1, TWOS.clone()
    case = Case(lambda x: x.add_(1), (ONES,))
    assert forward(run(mine, arguments=(mine,)), run(cpus, arguments=(cpus,)), case) == 0.0
    wrong = ONES.clone()
    text = forward(run(wrong, arguments=(wrong,)), run(cpus, arguments=(cpus,)), case)
    assert text.startswith("2 of 2 elements differ")


def test_memory_around_a_view_is_left_alone() -> None:
    def around(mine: Tensor, cpus: Tensor) -> Any:
        original = torch.zeros(6)
        case = Case(torch.neg, (original[1:3], original[4:5]))
        runs = (run(arguments=(memory[1:3], memory[4:5])) for memory in (mine, cpus))
        return forward(*runs, case)

    zeros = torch.zeros(6)
    for outside in (0, 3, 5):
        mine = zeros.clone()
        mine[outside] = 1
        assert around(mine, zeros.clone()) == "the memory around input 0 was changed, unlike the CPU's"
        assert around(mine, mine.clone()) == 0.0
        assert around(zeros.clone(), mine) == 0.0, "the CPU's own kernel has written there"
    inside = torch.zeros(6)
    inside[4] = 1
    assert around(inside, zeros.clone()) == CHANGED


def test_the_memory_of_a_resized_view_is_not_around_it() -> None:
    def drawn(mine: list[float], cpus: list[float]) -> Any:
        original = torch.zeros(6)
        runs = (run(arguments=(torch.tensor(memory, dtype=torch.float32)[1:4],)) for memory in (mine, cpus))
        return forward(*runs, Case(torch.rand, (original[1:2],)), random=True)

    assert drawn([0, 1, 2, 3, 0, 0], [0, 1, 0, 3, 0, 0]) == 0.0, "the CPU drew the number that was there"
    assert drawn([0, 1, 2, 3, 4, 0], [0, 1, 0, 3, 0, 0]) == "the memory around input 0 was changed, unlike the CPU's"


NAN = math.nan


@pytest.mark.parametrize(
    ("left", "right", "same"),
    [
        ([1.0, NAN], [1.0, NAN], True),
        ([1.0, NAN], [2.0, NAN], False),
        ([1.0, NAN], [NAN, NAN], False),
        ([1.0, NAN], [1.0, 2.0], False),
        ([1.0, 2.0], [1.0, 2.0], True),
        ([complex(NAN, 1)], [complex(NAN, 1)], True),
        ([complex(1, 1)], [complex(1, 2)], False),
        ([1, 2], [1, 2], True),
        ([1, 2], [1, 3], False),
        ([True], [False], False),
        ([1.0, 1.0], [1.0], False),
    ],
)
def test_bits_are_the_same_where_values_are_or_both_are_nan(left: list[Any], right: list[Any], same: bool) -> None:
    assert same_bits(torch.tensor(left), torch.tensor(right)) is same


def test_sparse_tensors_count_as_the_same() -> None:
    assert same_bits(ONES.to_sparse(), TWOS.to_sparse())
    assert same_bits(ONES.to_sparse(), TWOS)
    assert same_bits(ONES, TWOS.to_sparse())


def test_halves_of_complex_numbers_are_compared_too() -> None:
    half = torch.tensor([1 + 2j, complex("nan")], dtype=torch.complex32)
    assert same_bits(half, half.clone())
    assert not same_bits(half, half + 1)
