"""Every form of a call and every layout is among the cases, and each is what its title says."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from mpsmith.audit.cases.sources.derived import VariedSource
from mpsmith.audit.cases.sources.forms import FORM_FACTOR, GUARD, OutForm
from mpsmith.audit.cases.sources.layouts import LAYOUT_FACTOR, as_strided, channels_last, conjugate_view, negative_view
from mpsmith.audit.cases.sources.operand_forms import SOUND, number_and_tensor, number_position, overlapping
from mpsmith.audit.cases.sources.opinfo import OpInfoSource
from mpsmith.audit.model.case import Case
from support.source_cases import cases_by_title

OPINFOS = OpInfoSource()


def test_an_operator_that_has_all_forms_is_called_in_all_of_them() -> None:
    assert set(cases_by_title(VariedSource(FORM_FACTOR, OPINFOS), "add")) == {
        "out= exact",
        "out= transposed",
        "out= every other element",
        "out= empty",
        "out= one element too large",
        "out= of another dtype",
        "out= is the input",
        "out= overlaps the input",
        "a number and a 0-dim tensor",
        "in place",
        "method",
        "inference mode",
        "no_grad",
        "no_grad, out=",
        "deterministic algorithms",
        "second derivative",
        "forward mode",
        "autocast float16",
        "autocast bfloat16",
    }


def test_autocast_is_tried_where_there_is_no_gradient_too() -> None:
    assert {"autocast float16", "autocast bfloat16"} <= set(
        cases_by_title(VariedSource(FORM_FACTOR, OPINFOS), "argmax")
    )
    assert "autocast float16" not in cases_by_title(VariedSource(FORM_FACTOR, OPINFOS), "argmax", "int64")


def test_every_form_runs_on_the_cpu() -> None:
    for title, case in cases_by_title(VariedSource(FORM_FACTOR, OPINFOS), "mul").items():
        if title == "out= of another dtype":
            with pytest.raises(RuntimeError):
                case.call(*case.args, **case.kwargs)
        else:
            case.call(*case.args, **case.kwargs)


@pytest.mark.parametrize(
    ("kind", "shape", "stride"),
    [
        ("exact", (2, 3), (3, 1)),
        ("transposed", (2, 3), (1, 2)),
        ("every other element", (2, 3), (6, 2)),
        ("empty", (0,), (1,)),
        ("one element too large", (7,), (1,)),
    ],
)
def test_an_output_is_given_as_its_form_says(kind: str, shape: tuple[int, ...], stride: tuple[int, ...]) -> None:
    given: list[Tensor] = []

    def operator(x: Tensor, out: Tensor | None = None) -> Tensor:
        if out is None:
            return x * 2
        given.append(torch.empty_strided(out.shape, out.stride()))
        return torch.mul(x, 2, out=out)

    outs, same, around = OutForm(kind).of(operator)(torch.ones(2, 3))
    assert (given[0].shape, given[0].stride()) == (shape, stride)
    assert outs[0].tolist() == [[2, 2, 2]] * 2
    assert same == [True]
    assert bool(around) is (kind not in ("empty", "one element too large"))


def test_a_write_beside_the_output_changes_the_surrounding_memory() -> None:
    def careless(x: Tensor, out: Tensor | None = None) -> Tensor:
        if out is None:
            return x.clone()
        out.copy_(x)
        whole = torch.empty(0).set_(out.untyped_storage())  # type: ignore[call-overload]
        whole[GUARD - 1] = 99
        return out

    _, _, careful_around = OutForm("exact").of(lambda x, out=None: torch.mul(x, 1, out=out))(torch.ones(4))
    _, _, around = OutForm("exact").of(careless)(torch.ones(4))
    assert not torch.equal(around[0], careful_around[0])


# ---- out= in the input's memory


def titles(operator: Callable[..., Any], *args: Any) -> set[str]:
    return {case.title for case in overlapping(operator, Case(operator, args))}


def test_overlaps_are_tried_where_the_cpu_refuses_them_or_is_right() -> None:
    assert titles(torch.add, torch.ones(4), 1) == {"out= is the input", "out= overlaps the input"}


def test_overlaps_that_the_cpu_gets_wrong_in_silence_are_undefined() -> None:
    def shifts(x: Tensor, out: Tensor | None = None) -> Tensor:
        out = torch.zeros_like(x) if out is None else out
        for i in range(x.numel()):
            out[i] = x[i - 1]
        return out

    assert titles(shifts, torch.arange(4.0)) == set()


def test_a_result_of_another_shape_or_dtype_has_no_room_in_the_input() -> None:
    assert titles(torch.sum, torch.ones(4)) == set()
    assert titles(torch.eq, torch.ones(4), 1) == set()
    assert titles(torch.abs, torch.ones(())) == set()


def test_a_silent_wrong_result_of_an_overlap_is_detected() -> None:
    (case, _) = overlapping(torch.add, Case(torch.add, (torch.arange(4.0), 1)))
    assert case.call(*case.args) == SOUND
    broken = overlapping(torch.add, Case(torch.add, (torch.arange(4.0), 1)))
    honest = torch.add

    def loses(x: Tensor, other: Any, out: Tensor | None = None) -> Tensor:
        return honest(x, other) if out is None else out.zero_()

    assert {case.title for case in broken} == {"out= is the input", "out= overlaps the input"}
    assert titles(loses, torch.arange(1.0, 5.0), 1) == set()


# ---- .Scalar against .Tensor


@pytest.mark.parametrize(
    ("name", "position"),
    [("add", 1), ("eq", 1), ("pow", 1), ("clamp", 1), ("masked_fill", 2), ("exp", None), ("no_such_operator", None)],
)
def test_the_argument_that_may_be_a_number(name: str, position: int | None) -> None:
    assert number_position(name) == position


def test_a_number_and_a_tensor_are_both_called() -> None:
    seen: list[type] = []

    def operator(x: Tensor, other: Any) -> Tensor:
        seen.append(type(other))
        return x + other

    (case,) = number_and_tensor(operator, "add", Case(operator, (torch.ones(2), torch.tensor([3.0, 4.0]))))
    first, second = case.call(*case.args)
    assert seen == [float, Tensor]
    assert first.tolist() == second.tolist() == [4, 4]
    assert list(number_and_tensor(operator, "add", Case(operator, (torch.ones(2), torch.ones(0))))) == []


# ---- layouts


def test_a_sample_is_tried_in_every_layout() -> None:
    cases = cases_by_title(VariedSource(LAYOUT_FACTOR, OPINFOS), "add", "complex64")
    assert {"transposed", "stepped", "offset", "expanded", "padded rows", "as strided", "conjugate view"} <= set(cases)
    real = set(cases_by_title(VariedSource(LAYOUT_FACTOR, OPINFOS), "add"))
    assert {"negative view", "0-dim CPU scalar", "gradients of the outputs transposed"} <= real


@pytest.mark.parametrize(("shape", "format"), [((2, 3, 4, 5), torch.channels_last), ((2, 3, 2, 4, 5), None)])
def test_images_and_volumes_are_tried_channels_last(shape: tuple[int, ...], format: torch.memory_format | None) -> None:
    x = torch.randn(shape)
    varied = channels_last(x)
    assert varied is not None
    assert varied.is_contiguous(memory_format=format or torch.channels_last_3d)
    assert torch.equal(varied, x)
    assert channels_last(torch.randn(2, 3)) is None


def test_odd_strides_do_not_overlap_and_lazy_bits_are_set() -> None:
    x = torch.randn(3, 4)
    strided = as_strided(x)
    assert strided is not None
    assert torch.equal(strided, x)
    places = {i * strided.stride(0) + j * strided.stride(1) for i in range(3) for j in range(4)}
    assert len(places) == 12
    conj, neg = conjugate_view(x + 1j), negative_view(x)
    assert conj is not None
    assert conj.is_conj()
    assert torch.equal(conj.resolve_conj(), x + 1j)
    assert neg is not None
    assert neg.is_neg()
    assert torch.equal(neg.resolve_neg(), x)
