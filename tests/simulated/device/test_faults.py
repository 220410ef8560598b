"""Faults of the simulated device: each condition and each corruption does what its word says, and no more."""

from __future__ import annotations

import gc
import math
import threading
from collections.abc import Callable
from functools import cache
from typing import Any

import pytest
import torch
from torch import Tensor

from mpsmith.audit.model.selection import Settings
from mpsmith.audit.running.worker_setup import _inject_faults
from mpsmith.errors import MpsmithError
from mpsmith.simulator.device import loading as device
from mpsmith.simulator.device.faults import Fault, Term, clear, inject
from mpsmith.simulator.device.faults.conditions import CONDITIONS
from mpsmith.simulator.device.faults.corruptions import CORRUPTIONS
from mpsmith.simulator.errors import SimulatorError
from mpsmith.simulator.fallback_recorders import CounterRecorder
from mpsmith.simulator.opening import MpsDevice

pytestmark = pytest.mark.usefixtures("no_faults")


def arm(text: str) -> None:
    inject(Fault.parse(text))


def mps(values: Any, **kwargs: Any) -> Tensor:
    return torch.tensor(values, device="mps", **kwargs)


@pytest.fixture
def x() -> Tensor:
    return torch.arange(12.0).reshape(3, 4).to("mps")


def right(result: Tensor, x: Tensor) -> bool:
    return torch.equal(result.cpu(), torch.exp(x.cpu()))


# ---- conditions: the first call is one for which the fault acts, the second one that it spares


@cache
def line() -> Tensor:
    return torch.arange(24.0).to("mps")


@cache
def integers() -> Tensor:
    return torch.arange(6).to("mps")


@cache
def complexes() -> Tensor:
    return torch.complex(torch.ones(3), torch.arange(3.0)).to("mps")


OF_ONE: dict[str, tuple[Callable[[], Tensor], Callable[[], Tensor]]] = {
    "dtype(self, float16)": (lambda: line().half(), lambda: line()),
    "contiguous(self)": (lambda: line(), lambda: line()[2:]),
    "non_contiguous(self)": (lambda: line()[::2], lambda: line()[2:]),
    "transposed(self)": (lambda: line().view(4, 6).t(), lambda: line().view(4, 6)[:, :3]),
    "stepped(self)": (lambda: line()[::2], lambda: line().view(4, 6).t()),
    "inner_strided(self)": (lambda: line().view(4, 6)[:, :3], lambda: line().view(4, 6).t()),
    "offset(self)": (lambda: line()[1:], lambda: line()[:2]),
    "expanded(self)": (lambda: line()[:1].expand(4), lambda: line()[:1]),
    "empty(self)": (lambda: line()[:0], lambda: line()),
    "empty_dimension(self, 1)": (lambda: line().view(4, 6)[:, :0], lambda: line().view(4, 6)[:0]),
    "one_element(self)": (lambda: line()[:1], lambda: line()[0]),
    "no_dimension(self)": (lambda: line()[0], lambda: line()[:1]),
    "above(self, 23)": (lambda: line(), lambda: line()[:23]),
    "rows_above(self, 3)": (lambda: line().view(4, 6), lambda: line()),
    "longer(self, 6)": (lambda: line().view(2, 12), lambda: line().view(4, 6)),
    "dimensions(self, 3)": (lambda: line().view(2, 2, 6), lambda: line().view(4, 6)),
    "nan(self)": (lambda: mps([1.0, math.nan]), lambda: mps([1.0, math.inf])),
    "infinite(self)": (lambda: mps([1.0, -math.inf]), lambda: mps([1.0, math.nan])),
    "negative_zero(self)": (lambda: mps([1.0, -0.0]), lambda: mps([1.0, 0.0])),
    "near_zero(self, 0.5)": (lambda: mps([0.25]), lambda: mps([0.0, 0.75])),
    "large(self, 90)": (lambda: mps([-91.0]), lambda: mps([90.0, math.inf])),
    "far_mean(self)": (lambda: line() / 100 + 3000, lambda: line()),
    "beyond(self, 5)": (lambda: integers() - 6, lambda: integers()),
    "extreme(self)": (lambda: mps([2**63 - 1]), lambda: mps([2**63 - 2])),
    "conjugate(self)": (lambda: complexes().conj(), lambda: complexes()),
    "negated(self)": (lambda: torch._neg_view(line()), lambda: line()),
    "follows_gradients(self)": (lambda: line().clone().requires_grad_(), lambda: line()),
    "without_gradients": (lambda: line(), lambda: line().clone().requires_grad_()),
}
# Operators that get conjugate and negative views as they are; others get copies.
SEES_VIEWS = {"conjugate(self)": "unfold", "negated(self)": "unfold", "empty(self)": "triu", "extreme(self)": "tril"}


@pytest.mark.parametrize("text", OF_ONE)
def test_a_condition_of_one_argument(text: str) -> None:
    acts, spares = OF_ONE[text]
    arm(f"aten::flip: wrong_shape when {text}" if text not in SEES_VIEWS else f"aten::unfold: wrong_shape when {text}")

    def is_wrong(tensor: Tensor) -> bool:
        if text in SEES_VIEWS:
            return tensor.unfold(0, 1 if tensor.size(0) else 0, 1).dim() != tensor.dim() + 1
        return torch.flip(tensor, ()).dim() != tensor.dim()

    assert [is_wrong(acts()), is_wrong(spares())] == [True, False]


Call = Callable[[], Any]
OF_CALLS: dict[str, tuple[str, Call, Call]] = {
    "mixed(self, other)": ("add.Tensor", lambda: line() + line().half(), lambda: line() + line()),
    "shared(self, other)": ("add.Tensor", lambda: line()[:3] + line()[3:6], lambda: line()[:3] + line()[3:6].clone()),
    "same(self, other)": ("add.Tensor", lambda: line() + line(), lambda: line() + line().clone()),
    "shared(tensors, tensors)": (
        "cat",
        lambda: torch.cat([line()[:2], line()[2:]]),
        lambda: torch.cat([line(), line().clone()]),
    ),
    "is(keepdim, True)": ("amax", lambda: line().amax(0, keepdim=True), lambda: line().amax(0)),
    "is(alpha, 2)": ("add.Tensor", lambda: torch.add(line(), line(), alpha=2), lambda: torch.add(line(), line())),
    "given(min)": ("clamp", lambda: line().clamp(0, 1), lambda: line().clamp(max=1)),
    "omitted(min)": ("clamp", lambda: line().clamp(max=1), lambda: line().clamp(0, 1)),
    "negative(dim)": ("cumsum", lambda: line().cumsum(-1), lambda: line().cumsum(0)),
    "negative(dims)": ("flip", lambda: line().flip(-1), lambda: line().flip(0)),
    "fractional(max)": ("clamp", lambda: line().clamp(0, 1.5), lambda: line().clamp(0, 1.0)),
    "lacks(output_mask, 0)": (
        "native_layer_norm_backward",
        lambda: layer_norm_gradients([False, True, True]),
        lambda: layer_norm_gradients([True, False, False]),
    ),
    "out_of_range(index, self)": (
        "index_select",
        lambda: line().index_select(0, mps([24])),
        lambda: line().index_select(0, mps([2])),
    ),
}


def layer_norm_gradients(mask: list[bool]) -> Any:
    x, ones = line().view(4, 6), torch.ones(4, 1, device="mps")
    weight = torch.ones(6, device="mps")
    return torch.ops.aten.native_layer_norm_backward(x, x, [6], ones, ones, weight, weight, mask)


@pytest.mark.parametrize("text", OF_CALLS)
def test_a_condition_of_the_other_arguments(text: str) -> None:
    overload, acts, spares = OF_CALLS[text]
    arm(f"aten::{overload}: raises when {text}")
    spares()
    with pytest.raises(RuntimeError, match="the kernel failed"):
        acts()


def test_the_second_call_with_the_same_sizes(x: Tensor) -> None:
    arm("aten::exp: values when repeated")
    assert [right(torch.exp(t), t) for t in (x, x, x[:2], x)] == [True, False, True, True]


def test_each_third_call(x: Tensor) -> None:
    arm("aten::exp: values when every(3)")
    assert [right(torch.exp(x), x) for _ in range(6)] == [True, True, False, True, True, False]


def test_a_number_near_that_of_the_last_call() -> None:
    arm("aten::clamp: previous_number(max) when near_previous(max)")
    assert [float(line().clamp(0, top).max()) for top in (2.0, 2.01, 3.0, 2.0)] == [2.0, 2.0, 3.0, 2.0]


def test_a_call_from_another_thread(x: Tensor) -> None:
    arm("aten::exp: values when other_thread")
    seen = [right(torch.exp(x), x)]
    other = threading.Thread(target=lambda: seen.append(right(torch.exp(x), x)))
    other.start()
    other.join()
    assert seen == [True, False]


def test_both_conditions_must_hold(x: Tensor) -> None:
    arm("aten::exp: values when offset(self) and dtype(self, float16)")
    half = x.half()
    assert right(torch.exp(x[1:]), x[1:])
    assert right(torch.exp(half[:1]), half[:1])
    assert not right(torch.exp(half[1:]), half[1:])


# ---- corruptions: what a fault of every call makes of a call

OFF = [1.0, 2.5, 4.0]
RESULTS: dict[str, tuple[str, Callable[[], Tensor], list[Any]]] = {
    "values": ("neg", lambda: -mps([0.0, -1.0, -2.0]), OFF),
    "second_result": ("aminmax", lambda: torch.aminmax(mps([1.0, 2.0]))[1], 4.0),  # type: ignore[dict-item]
    "last_element": ("neg", lambda: -mps([0.0, -1.0, -2.0]), [0.0, 1.0, 4.0]),
    "all_nan": ("floor", lambda: mps([1.0]).floor().isnan(), [True]),
    "nan_result": ("floor", lambda: mps([1.0, 2.0]).floor().isnan(), [False, True]),
    "zeros": ("neg", lambda: -mps([1, 2]), [0, 0]),
    "second_half": ("neg", lambda: -mps([1, 2, 3]), [-1, -2, 0]),
    "near(0.5, 2)": ("neg", lambda: -mps([1.0, -4.0]), [-1.0, 8.0]),
    "nan_lost": ("neg", lambda: -mps([math.nan, math.inf]), [0.0, -math.inf]),
    "infinity_lost": ("neg", lambda: (-mps([math.inf])).isfinite(), [True]),
    "infinity_to_nan": ("neg", lambda: (-mps([math.inf, 1.0])).isnan(), [True, False]),
    "sign_of_zero_lost": ("neg", lambda: (-mps([0.0, 1.0])).signbit(), [False, True]),
    "quantised_near_zero": ("neg", lambda: -mps([1e-9, 1.0]), [-0.0, -1.0]),
    "saturated": ("add.Tensor", lambda: mps([250], dtype=torch.uint8) + mps([10], dtype=torch.uint8), [255]),
    "ignores(alpha)": ("add.Tensor", lambda: torch.add(mps([1.0]), mps([1.0]), alpha=3), [2.0]),
    "takes(keepdim, False)": ("amax", lambda: mps([[1.0]]).amax(1, keepdim=True), [1.0]),
    "truncates(max)": ("clamp", lambda: mps([9.0]).clamp(0.0, 2.5), [2.0]),
    "positive(dims)": ("flip", lambda: mps([[1, 2], [3, 4]]).flip(-1), [[3, 4], [1, 2]]),
    "nan_as_zero(self)": ("exp", lambda: mps([math.nan]).exp(), [1.0]),
    "reads_as_contiguous(self)": ("neg", lambda: -mps([1, 2, 3, 4])[::2], [-1, -2]),
    "ignores_offset(self)": ("neg", lambda: -mps([1, 2, 3])[1:], [-1, -2]),
    "ignores_conjugation(self)": ("unfold", lambda: torch._neg_view(mps([1.0])).unfold(0, 1, 1), [[1.0]]),
    "through_float32(self)": ("neg", lambda: -mps([2**24 + 1]), [-(2**24)]),
    "through_float64(self)": ("neg", lambda: -mps([2**53 + 1]), [-(2**53)]),
    "through_int32(self)": ("neg", lambda: -mps([2**32 + 1]), [-1]),
    "through_half(self)": ("neg", lambda: -mps([2049.0]), [-2048.0]),
    "only_first(self, 2)": ("cumsum", lambda: mps([1, 1, 1]).cumsum(0), [1, 2, 2]),
    "ignores_last(self)": ("cumsum", lambda: mps([1, 1, 1]).cumsum(0), [1, 2, 2]),
    "clamps(index, self)": ("index_select", lambda: mps([1, 2]).index_select(0, mps([7])), [2]),
    "unwritten(self)": ("neg_", lambda: mps([1, 2]).neg_(), [1, 2]),
    "squeezed": ("amax", lambda: mps([[1.0]]).amax(1, keepdim=True), 1.0),  # type: ignore[dict-item]
    "scaled(2)": ("neg", lambda: -mps([1.0]), [-2.0]),
}


@pytest.mark.parametrize("text", RESULTS)
def test_a_corruption_changes_the_result(text: str) -> None:
    overload, call, expected = RESULTS[text]
    before = call() if not text.startswith(("clamps",)) else None
    arm(f"aten::{overload}: {text}")
    given = call()
    assert given.cpu().tolist() == expected
    if before is not None:
        assert before.shape != given.shape or before.cpu().tolist() != expected or text == "quantised_near_zero"
    clear()
    if before is not None:
        assert torch.equal(call().cpu(), before.cpu()) or bool(before.isnan().any())


def test_half_of_a_written_argument_stays_as_it_was() -> None:
    arm("aten::neg_: second_half")
    assert mps([1, 2, 3]).neg_().tolist() == [-1, -2, 3]


def test_the_result_of_the_first_call_of_the_same_sizes() -> None:
    arm("aten::neg: cached")
    assert [(-mps(values)).tolist() for values in ([1], [2], [2, 3], [3])] == [[-1], [-1], [-2, -3], [-1]]


@pytest.mark.parametrize(
    ("corruption", "differs"),
    [
        ("wrong_shape", lambda t: t.shape == (1, 3, 4)),
        ("wrong_dtype", lambda t: t.dtype is torch.float16),
        ("wrong_stride", lambda t: t.stride() == (1, 4)),
    ],
)
def test_wrong_metadata_with_right_values(corruption: str, differs: Callable[[Tensor], bool], x: Tensor) -> None:
    arm(f"aten::exp: {corruption}")
    small = x / 12
    result = torch.exp(small)
    assert differs(result)
    torch.testing.assert_close(result.cpu().float().reshape(3, 4), torch.exp(small.cpu()), rtol=1e-3, atol=0)


def test_a_result_in_the_memory_of_the_input(x: Tensor) -> None:
    arm("aten::exp: aliases")
    assert torch.exp(x).data_ptr() == x.data_ptr()


def test_a_view_that_is_a_copy(x: Tensor) -> None:
    arm("aten::unfold: copies")
    assert x.unfold(0, 2, 1).data_ptr() != x.data_ptr()


def test_a_write_behind_the_output(x: Tensor) -> None:
    arm("aten::exp.out: writes_outside")
    storage = torch.ones(20, device="mps")
    torch.exp(x, out=storage[4:16].view(3, 4))
    expected = torch.ones(20)
    expected[4:16] = torch.exp(x.cpu()).flatten()
    assert (storage.cpu() != expected).nonzero().tolist() == [[16]]


def test_a_changed_input(x: Tensor) -> None:
    arm("aten::exp: changes_input")
    before = x.cpu()
    torch.exp(x)
    assert (x.cpu() - before).flatten().tolist() == [1.0] + [0.0] * 11


def test_result_memory_is_reused_by_the_next_call(x: Tensor) -> None:
    arm("aten::exp: freed")
    first = torch.exp(x)
    assert right(first, x)
    assert right(torch.exp(x), x)
    assert first.isnan().all()


def test_a_leak_grows_with_each_call(x: Tensor) -> None:
    arm("aten::exp: leaks")
    gc.collect()  # what other tests left
    before = torch.mps.current_allocated_memory()
    for _ in range(5):
        torch.exp(x)
    assert torch.mps.current_allocated_memory() == before + 5 * 48


def draws(seed: int) -> Tensor:
    torch.mps.manual_seed(seed)
    return torch.empty(2000, device="mps").uniform_().cpu()


def test_an_ignored_seed() -> None:
    assert torch.equal(draws(1), draws(1))
    arm("aten::uniform_: own_seed")
    assert not torch.equal(draws(1), draws(1))


def test_the_same_draws_again() -> None:
    arm("aten::uniform_: same_draws")
    assert torch.equal(draws(1), draws(2))


def test_another_distribution() -> None:
    assert abs(float(draws(1).mean()) - 1 / 2) < 0.05
    arm("aten::uniform_: larger_of_two")
    assert abs(float(draws(1).mean()) - 2 / 3) < 0.05


def test_another_error(x: Tensor) -> None:
    with pytest.raises(RuntimeError, match="must match the size"):
        torch.add(x, x[:, :3])
    arm("aten::add.Tensor: other_error")
    with pytest.raises(ValueError, match="must match the size"):
        torch.add(x, x[:, :3])
    assert torch.add(x, x).shape == x.shape


def test_uncounted_fallback(x: Tensor) -> None:
    arm("aten::exp: on_cpu")
    device.reset_counters()
    assert right(torch.exp(x), x)
    assert "aten::exp" not in device.counters()


@pytest.mark.parametrize(("corruption", "signal"), [("aborts", 6), ("segfaults", 11), ("hangs", 14)])
def test_some_corruptions_end_the_process(corruption: str, signal: int, fresh_python) -> None:
    script = f"""
        import signal, torch
        from mpsmith.audit.releases.surface.profiles import coverage_profile
        from mpsmith.simulator.device import loading as device
        from mpsmith.simulator.device.faults import Fault, inject
        device.load(coverage_profile(None))
        inject(Fault.parse("aten::exp: {corruption}"))
        signal.setitimer(signal.ITIMER_REAL, 2)
        torch.exp(torch.ones(3, device="mps"))
    """
    assert fresh_python(script, check=False).returncode == -signal


def test_every_condition_and_corruption_has_a_test() -> None:
    tried = {Fault.parse(f"aten::exp: values when {text}").conditions[0].name for text in (*OF_ONE, *OF_CALLS)}
    assert set(CONDITIONS) == tried | {"repeated", "every", "near_previous", "other_thread"}
    tried = {Fault.parse(f"aten::exp: {text}").corruption.name for text in RESULTS}
    alone = "wrong_shape wrong_dtype wrong_stride aliases copies writes_outside changes_input freed leaks cached"
    ends = "previous_number raises other_error on_cpu aborts segfaults hangs own_seed same_draws larger_of_two"
    assert set(CORRUPTIONS) == tried | set(alone.split()) | set(ends.split())


# ---- arming


def test_a_cleared_fault_is_gone(x: Tensor) -> None:
    arm("aten::exp: values")
    assert not right(torch.exp(x), x)
    clear()
    assert right(torch.exp(x), x)


def test_only_the_named_overload_is_faulty(x: Tensor) -> None:
    arm("aten::exp.out: values")
    assert right(torch.exp(x), x)
    assert not right(torch.exp(x, out=torch.empty_like(x)), x)


def test_numbers_in_place_of_tensors_stay_numbers(x: Tensor) -> None:
    arm("aten::add.Tensor: values when empty(self)")
    arm("aten::mul.Tensor: values")
    half, small = x.half(), mps([1, 2], dtype=torch.int8)
    assert (half + 1.5).dtype is torch.float16
    assert (half + 1.5).cpu().tolist() == (half.cpu() + 1.5).tolist()
    assert (small + 1).dtype is torch.int8
    assert (small + 1.5).tolist() == [2.5, 3.5]
    assert (small * 2).tolist() == [3, 5]


def test_only_in_the_gradient(x: Tensor) -> None:
    arm("aten::silu_backward: values")
    leaf, twin = x.clone().requires_grad_(), x.cpu().requires_grad_()
    outputs = [torch.nn.functional.silu(t) for t in (leaf, twin)]
    torch.testing.assert_close(outputs[0].cpu(), outputs[1])
    for output in outputs:
        output.sum().backward()
    torch.testing.assert_close(leaf.grad.cpu(), twin.grad * 1.5 + 1)


def test_a_fault_calls_no_operator_of_the_device_but_its_own(x: Tensor) -> None:
    arm("aten::exp: through_half(self) when nan(self) and offset(self)")
    nans = torch.full((3,), math.nan, device="mps")[1:]
    device.reset_counters()
    torch.exp(nans)
    assert set(device.counters()) <= {"aten::exp", "aten::empty_strided", "aten::detach"}


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("aten::exp: aborts", Fault("aten::exp", Term("aborts"))),
        (
            "aten::exp.out: near(3.9e-06, 3) when offset(self) and above(self, 65536)",
            Fault(
                "aten::exp.out", Term("near", (3.9e-06, 3)), (Term("offset", ("self",)), Term("above", ("self", 65536)))
            ),
        ),
        ("aten::sort.stable: takes(stable, None)", Fault("aten::sort.stable", Term("takes", ("stable", None)))),
        (
            "aten::amax: values when is(keepdim, True)",
            Fault("aten::amax", Term("values"), (Term("is", ("keepdim", True)),)),
        ),
    ],
)
def test_text_round_trip(text: str, fault: Fault) -> None:
    assert Fault.parse(text) == fault
    assert str(fault) == text


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("exp", "write it as"),
        ("aten::exp", "write it as"),
        ("aten::exp: leeks", r"no 'leeks' \(did you mean leaks"),
        ("aten::exp: leaks when offsets(self)", r"no 'offsets' \(did you mean offset"),
        ("aten::exp: leaks when offset", r"write offset\(name\)"),
        ("aten::exp: leaks when above(self)", r"write above\(name, elements\)"),
        ("aten::exp: leaks when (", "not a word with arguments"),
        ("aten::exqp: leaks", r"no native kernel aten::exqp \(did you mean exp"),
        ("aten::exp: leaks when offset(other)", r"aten::exp has no argument 'other' \(it has self\)"),
    ],
)
def test_rejects_bad_text(text: str, complaint: str) -> None:
    with pytest.raises(SimulatorError, match=complaint):
        inject(Fault.parse(text))


def test_a_real_device_gets_no_faults() -> None:
    real = MpsDevice(simulated=False, profile=None, recorder=CounterRecorder())
    with pytest.raises(MpsmithError, match="simulated device only"):
        _inject_faults(("aten::exp: leaks",), real)
    _inject_faults((), real)


def test_faults_are_recorded_with_a_run() -> None:
    settings = Settings(faults=("aten::exp: leaks",))
    assert Settings.from_recorded(settings.recorded()).faults == settings.faults
    old = settings.recorded()
    del old["faults"]
    assert Settings.from_recorded(old).faults == ()
