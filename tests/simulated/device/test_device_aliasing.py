"""Views, in-place operators, out=, resize_ and set_: memory is shared on mps exactly where it is on the CPU."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

BOTH = ("cpu", "mps")


def same(a: torch.Tensor, b: torch.Tensor) -> None:
    """`a` on mps and `b` on the CPU agree in values, shape, strides and offset."""
    assert a.device.type == "mps"
    assert (a.shape, a.stride(), a.storage_offset()) == (b.shape, b.stride(), b.storage_offset())
    torch.testing.assert_close(a.cpu(), b, rtol=0, atol=0, equal_nan=True)


VIEWS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "view": lambda x: x.view(6, 4),
    "transpose": lambda x: x.t(),
    "select": lambda x: x[1],
    "slice": lambda x: x[1:3, ::2],
    "as_strided": lambda x: x.as_strided((3, 3), (2, 3), 1),
    "expand": lambda x: x[:, :1].expand(4, 6),
    "diagonal": lambda x: x.diagonal(),
    "unfold": lambda x: x.unfold(1, 3, 2),
    "narrow of chunk": lambda x: x.chunk(2, 1)[1].narrow(0, 1, 2),
    "split": lambda x: x.split([1, 3])[1],
    "unbind": lambda x: x.unbind(1)[2],
    "movedim of view": lambda x: x.view(2, 2, 6).movedim(0, 2),
    "detach": lambda x: x.detach(),
    "real of complex": lambda x: torch.view_as_complex(x.view(4, 3, 2)).real,
    "another dtype": lambda x: x.view(torch.int32),
    "unsqueeze": lambda x: x.unsqueeze(1).squeeze(1),
}


@pytest.mark.parametrize("view", VIEWS.values(), ids=VIEWS.keys())
def test_a_view_shares_memory_both_ways(view: Callable[[torch.Tensor], torch.Tensor]) -> None:
    bases = {d: torch.arange(24.0, device=d).reshape(4, 6) for d in BOTH}
    views = {d: view(x) for d, x in bases.items()}
    same(views["mps"], views["cpu"])
    assert views["mps"].untyped_storage().data_ptr() == bases["mps"].untyped_storage().data_ptr()
    for d in BOTH:
        if not torch._debug_has_internal_overlap(views[d]):
            views[d].mul_(3)
        bases[d].add_(1)
    same(bases["mps"], bases["cpu"])
    same(views["mps"], views["cpu"])


@pytest.mark.parametrize("view", ["conj", "neg", "imag"])
def test_lazy_conjugation_and_negation(view: str) -> None:
    results = {}
    for d in BOTH:
        x = torch.tensor([1 + 2j, -3j], device=d)
        y = {"conj": x.conj, "neg": x._neg_view, "imag": lambda x=x: x.conj().imag}[view]()
        results[d] = (y.is_conj(), y.is_neg(), (y * 2).cpu().resolve_conj().resolve_neg().tolist(), (y @ y).item())
    assert results["mps"] == results["cpu"]


def test_in_place_operators_return_their_argument_and_raise_its_version() -> None:
    x = torch.zeros(3, device="mps")
    version = x._version
    assert x.add_(1) is x
    assert torch.relu_(x) is x
    assert x._version == version + 2
    assert x[1:].zero_()._version == x._version


def test_below_autograd_too_operators_return_their_argument() -> None:
    with torch.inference_mode():
        x = torch.zeros(3, device="mps")
        assert torch.ops.aten.add_.Tensor(x, 1) is x
        assert torch.ops.aten.add.out(x, 1, out=x) is x
        assert torch.ops.aten.set_.source_Tensor(x, torch.ones(2, device="mps")) is x
    assert x.tolist() == [1, 1]


def test_autograd_notices_an_in_place_change() -> None:
    x = torch.rand(3, device="mps", requires_grad=True)
    y = x.exp()
    y.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


def test_gradients_flow_through_views_that_were_written() -> None:
    grads = {}
    for d in BOTH:
        x = torch.arange(6.0, device=d, requires_grad=True)
        y = (x * 1).view(2, 3)
        y[0].mul_(10)
        y.t()[1].sub_(x[:2])
        y.square().sum().backward()
        grads[d] = x.grad
    same(grads["mps"], grads["cpu"])


def test_overlapping_arguments_are_seen_as_overlapping() -> None:
    """torch refuses a partly overlapping out=, which it can only notice if the CPU aliases overlap."""
    x = torch.arange(6.0, device="mps")
    with pytest.raises(RuntimeError, match="unsupported operation: some elements of the input tensor"):
        torch.add(x[1:], 1, out=x[:-1])
    x[2:4].copy_(x[:2])
    assert x.tolist() == [0, 1, 0, 1, 4, 5]


def test_the_same_tensor_twice_is_one_tensor() -> None:
    x = torch.arange(4.0, device="mps")
    torch.mul(x, x, out=x)
    assert x.tolist() == [0, 1, 4, 9]
    torch._foreach_add_([x, x], 1)
    assert x.tolist() == [2, 3, 6, 11]


@pytest.mark.parametrize("size", [(0,), (2, 3)])
def test_out_is_resized_and_returned(size: tuple[int, ...]) -> None:
    out = torch.empty(size, device="mps")
    assert torch.add(torch.ones(2, 3, device="mps"), 1, out=out) is out
    same(out, torch.full((2, 3), 2.0))


def test_an_out_that_held_something_is_resized_with_a_warning() -> None:
    out = torch.empty(7, device="mps")
    with pytest.warns(UserWarning, match="An output with one or more elements was resized"):
        torch.add(torch.ones(2, 3, device="mps"), 1, out=out)
    same(out, torch.full((2, 3), 2.0))


def test_out_keeps_the_strides_it_came_with() -> None:
    outs = {d: torch.empty(3, 2, device=d).t() for d in BOTH}
    for d in BOTH:
        torch.mul(torch.arange(6.0, device=d).view(2, 3), 2, out=outs[d])
    same(outs["mps"], outs["cpu"])


def test_resize_keeps_values_and_is_seen_by_views() -> None:
    results = {}
    for d in BOTH:
        x = torch.arange(4.0, device=d)
        view = x[1:3]
        x.resize_(2, 1)
        x.resize_(3, 5)
        x.view(-1)[4:] = -1
        view.add_(100)
        results[d] = (x, view, x.untyped_storage().nbytes())
    same(results["mps"][0], results["cpu"][0])
    same(results["mps"][1], results["cpu"][1])
    assert results["mps"][2] == results["cpu"][2]


def test_set_shares_and_lets_go() -> None:
    x = torch.arange(6.0, device="mps")
    y = torch.empty(0, device="mps")
    y.set_(x.untyped_storage(), 2, (2, 2), (1, 2))
    y.mul_(10)
    assert x.tolist() == [0, 1, 20, 30, 40, 50]
    y.set_(torch.full((2,), 7.0, device="mps"))
    y.zero_()
    assert x.tolist() == [0, 1, 20, 30, 40, 50]
    y.set_()
    assert y.shape == (0,)
    x.data = torch.ones(2, device="mps")
    assert x.tolist() == [1, 1]


def test_swapping_data_keeps_device_and_memory_straight() -> None:
    x = torch.ones(3, device="mps")
    y = torch.zeros(2, device="mps")
    torch.utils.swap_tensors(x, y)
    assert (x.tolist(), y.tolist()) == ([0, 0], [1, 1, 1])


def test_operators_that_return_an_argument_return_the_very_same() -> None:
    x = torch.ones(2, 2, device="mps")
    assert x.contiguous() is x
    assert x.to("mps") is x
    assert torch.clamp_(x, 0, 1) is x
    assert x.resize_(2, 2) is x


def test_lists_of_views_point_into_their_base() -> None:
    x = torch.arange(6.0, device="mps")
    for part in torch.ops.aten.split.Tensor(x, 2):
        part.neg_()
    assert x.tolist() == [0, -1, -2, -3, -4, -5]


STEPS = st.sampled_from(
    [
        "t",
        "flip the sign of a row",
        "slice",
        "step",
        "reshape",
        "expand",
        "double in place",
        "write base",
        "clone",
        "resize",
        "fill a column",
        "cumulate",
    ]
)


def play(steps: list[str], device: str) -> tuple[torch.Tensor, torch.Tensor]:
    """Apply `steps` to a view of a base tensor; the same steps mean the same on every device."""
    base = torch.arange(24.0, device=device)
    x = base.view(4, 6)
    for step in steps:
        if step == "t":
            x = x.transpose(0, -1)
        elif step == "flip the sign of a row":
            x.select(0, 0).neg_() if x.size(0) and not torch._debug_has_internal_overlap(x) else None
        elif step == "slice" and x.size(0) > 1:
            x = x[1:]
        elif step == "step":
            x = x[..., ::2]
        elif step == "reshape":
            x = x.reshape(-1, 2) if x.numel() % 2 == 0 else x.reshape(-1)
        elif step == "expand" and x.dim() < 4:
            x = x.unsqueeze(0).expand(2, *x.shape)
        elif step == "double in place" and not torch._debug_has_internal_overlap(x):
            x.mul_(2)
        elif step == "write base":
            base.add_(1)
        elif step == "clone":
            base = x = x.clone()
        elif step == "resize" and x is base:
            x.resize_(3, 2).fill_(4)
        elif step == "fill a column" and x.dim() > 1 and x.size(-1) and not torch._debug_has_internal_overlap(x):
            x[..., 0] = -3
        elif step == "cumulate" and x.dim():
            x = x.cumsum(0)
    return base, x


@settings(max_examples=150, deadline=None)
@given(st.lists(STEPS, max_size=10))
def test_any_sequence_of_views_and_writes_ends_the_same(steps: list[str]) -> None:
    (base, view), (expected_base, expected_view) = play(steps, "mps"), play(steps, "cpu")
    same(base, expected_base)
    same(view, expected_view)
    assert (view.untyped_storage().data_ptr() == base.untyped_storage().data_ptr()) == (
        expected_view.untyped_storage().data_ptr() == expected_base.untyped_storage().data_ptr()
    )
