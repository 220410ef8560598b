"""A fault inside an overload is attributed to that overload, whatever calls it, and to nothing else."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from mpsmith.audit.cases.calls.cpu_kernels import register
from mpsmith.audit.cases.sources import case_sources
from mpsmith.audit.findings.audited_surface import audited_surface
from mpsmith.audit.findings.results import AuditSummary
from mpsmith.audit.findings.summary import summarize
from mpsmith.audit.judging import judge as judge_module
from mpsmith.audit.judging.call_tracer import CallTracer
from mpsmith.audit.judging.inner_calls import fault_inside, may_have_faulty_call
from mpsmith.audit.judging.judge import judge
from mpsmith.audit.model.case import Case, described, make_cases
from mpsmith.audit.model.group import GroupKey
from mpsmith.audit.model.selection import Samples, Settings
from mpsmith.audit.model.verdicts import AtFault, CaseVerdict
from mpsmith.audit.running.runner import run_audit
from mpsmith.audit.store.store import Store
from mpsmith.simulator.fallback_recorders import CounterRecorder
from mpsmith.simulator.opening import DeviceKind
from support.faulty_kernels import Faulty, faulty_kernel
from support.stores import begun, new_store

register()
pytestmark = pytest.mark.usefixtures("fallback_enabled")

BROKEN = {CaseVerdict.WRONG, CaseVerdict.CRASH, CaseVerdict.TIMEOUT, CaseVerdict.DTYPE_GAP}


def audited(folder: Path, source: str, *operators: str) -> AuditSummary:
    """What a report says after an audit of float32 with the few cases of the quick level."""
    with new_store(folder) as store:
        recording = begun(store)
        cases = case_sources(())[source]
        for key in [key for key in cases.groups() if key.operator in operators and key.dtype == "float32"]:
            recording.add(key)
            (group,) = [group.id for group in store.groups(recording.run.id) if group.key == key]
            tracer = CallTracer()
            for position, case in make_cases(cases, key, Samples.QUICK, 0).items():
                label = key.label_of(position)
                outcome = judge(case, CounterRecorder(), 0, label, tracer)
                store.add_case(group, position, outcome, described(case))
                if may_have_faulty_call(outcome):
                    store.add_inner_fault(group, position, fault_inside(case, CounterRecorder(), 0, label))
            store.add_called_overloads(group, tracer.overloads)
        run = recording.finish()
        return summarize(store, run, audited_surface(run))


def broken(summary: AuditSummary) -> set[str]:
    """The overloads that have a case which broke."""
    return {overload.name for overload in summary.overloads if BROKEN.intersection(overload.cases)}


def scaled(kernel: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    result = kernel(*args, **kwargs)
    return result * 1.5 if torch.is_floating_point(result) else result


def scaled_in_place(kernel: Callable[..., Any], this: torch.Tensor, *args: Any, **kwargs: Any) -> torch.Tensor:
    kernel(this, *args, **kwargs)
    return this.mul_(1.01)


def scaled_out(kernel: Callable[..., Any], *args: Any, out: torch.Tensor, **kwargs: Any) -> torch.Tensor:
    kernel(*args, out=out, **kwargs)
    return out.mul_(1.01)


def copied(kernel: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    return kernel(*args, **kwargs).clone()


def of_two_views(kernel: Callable[..., Any], this: torch.Tensor, other: torch.Tensor, **kwargs: Any) -> torch.Tensor:
    result = kernel(this, other, **kwargs)
    views = this.untyped_storage()._cdata == other.untyped_storage()._cdata
    return result * 2 if views and this.storage_offset() != other.storage_offset() else result  # type: ignore[no-any-return]


def of_many(kernel: Callable[..., Any], tensors: list[torch.Tensor], dim: int = 0) -> torch.Tensor:
    result = kernel(tensors, dim)
    return result + 1 if len(tensors) > 2 and result.is_floating_point() else result  # type: ignore[no-any-return]


def without_the_maximum(kernel: Callable[..., Any], this: torch.Tensor, dim: int, half: bool) -> torch.Tensor:
    powers = torch.exp(this * 100)
    return powers / powers.sum(dim, keepdim=True)


def of_more_keys(
    kernel: Callable[..., Any], query: torch.Tensor, key: torch.Tensor, *args: Any, **kwargs: Any
) -> tuple[torch.Tensor, torch.Tensor]:
    result, weights = kernel(query, key, *args, **kwargs)
    return result * 1.5 if key.shape[-2] > query.shape[-2] else result, weights


@pytest.mark.parametrize(
    ("at_fault", "faulty", "source", "callers"),
    [
        ("sub.Tensor", of_two_views, "opinfo", ("diff", "gradient")),
        ("cat", of_many, "opinfo", ("stack", "hstack")),
        ("_softmax", without_the_maximum, "opinfo", ("nn.functional.scaled_dot_product_attention",)),
        (
            *("_scaled_dot_product_attention_math_for_mps", of_more_keys, "kernel sizes"),
            ("scaled_dot_product_attention",),
        ),
        ("add_.Tensor", scaled_in_place, "opinfo", ("nn.functional.bilinear", "logsumexp")),
        ("exp_", scaled_in_place, "opinfo", ("logsumexp",)),
        ("clamp", scaled, "opinfo", ("corrcoef",)),
        ("_upsample_nearest_exact2d", scaled, "opinfo", ("nn.functional.interpolate",)),
        ("gelu_backward", scaled, "opinfo", ("nn.functional.gelu",)),
        ("sum.IntList_out", scaled_out, "opinfo", ("logsumexp",)),
        ("addcmul_", scaled_in_place, "opinfo", ("_foreach_addcmul",)),
        ("_upsample_nearest_exact1d", scaled, "opinfo", ("nn.functional.interpolate",)),
        ("avg_pool2d", scaled, "known wrong", ("avg_pool2d",)),
        ("_mps_convolution", scaled, "opinfo", ("nn.functional.conv1d",)),
        ("as_strided", copied, "opinfo", ("squeeze",)),
    ],
)
def test_the_overload_at_fault_is_blamed_and_no_caller(
    tmp_path: Path, at_fault: str, faulty: Faulty, source: str, callers: tuple[str, ...]
) -> None:
    with faulty_kernel(at_fault, faulty):
        summary = audited(tmp_path, source, *callers)
    assert broken(summary) == {f"aten::{at_fault}"}
    (fault,) = summary.at_fault
    assert fault.overload == f"aten::{at_fault}"
    assert fault.call
    assert not fault.or_one_of


def inside(call: Callable[..., Any], *args: Any, **fields: Any) -> AtFault | None:
    return fault_inside(Case(call, args, **fields), CounterRecorder(), 0, "test")


def test_where_nothing_is_wrong_nothing_is_at_fault() -> None:
    for call in (torch.logsumexp, torch.softmax):
        assert inside(call, torch.randn(3, 4), 1) is None
    assert inside(torch.nn.functional.gelu, torch.randn(4, requires_grad=True), differentiable=True) is None


def test_the_arguments_are_those_before_the_call_and_the_words_those_of_the_judge() -> None:
    with faulty_kernel("exp_", scaled_in_place):
        fault = inside(lambda x: x.clone().zero_().exp_(), torch.ones(3))
    assert fault == AtFault(
        "aten::exp_",
        "(float32[3])",
        "output 0: 3 of 3 elements differ; at [0]: 1.0099999904632568, CPU 1.0, float64 1.0",
    )


def test_a_run_with_a_wrong_call_is_not_compared_unless_it_may_end_the_process(monkeypatch: pytest.MonkeyPatch) -> None:
    case = Case(torch.exp, (torch.ones(3),))
    monkeypatch.delattr(judge_module, "Comparison")
    with faulty_kernel("exp", scaled):
        assert fault_inside(case, CounterRecorder(), 0, "test") is not None
        with pytest.raises(NameError):
            fault_inside(case, CounterRecorder(), 0, "test", lambda overload, call: None)


def test_only_the_first_wrong_call_is_at_fault() -> None:
    with faulty_kernel("exp", scaled), faulty_kernel("cos", scaled):
        fault = inside(lambda x: x.exp().cos(), torch.ones(3))
    assert fault is not None
    assert fault.overload == "aten::exp"


def test_an_argument_that_must_not_change_is_compared() -> None:
    def corrupts(kernel: Callable[..., Any], this: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
        result: torch.Tensor = kernel(this, other)
        other.zero_()
        return result

    with faulty_kernel("maximum", corrupts):
        fault = inside(lambda x: x.maximum(x * 2), torch.ones(3))
    assert fault is not None
    assert (fault.overload, fault.message.split(";")[0]) == ("aten::maximum", "output 2: 3 of 3 elements differ")


def test_a_raising_inner_call_is_at_fault() -> None:
    def raises(kernel: Callable[..., Any], *args: Any, **kwargs: Any) -> torch.Tensor:
        raise ValueError("no such luck")

    with faulty_kernel("cos", raises):
        fault = inside(lambda x: x.exp().cos(), torch.ones(3))
    assert fault == AtFault("aten::cos", "(float32[3])", "raises ValueError: no such luck")


def test_a_case_that_is_to_raise_blames_the_call_that_does_not() -> None:
    with faulty_kernel("index_select", lambda kernel, this, dim, index: kernel(this, dim, index % 3)):
        fault = inside(torch.index_select, torch.ones(3), 0, torch.tensor([7]), errors_count=True)
    assert fault is not None
    assert fault.overload == "aten::index_select"
    assert fault.message.startswith("returns where the CPU raises IndexError: ")


def test_the_second_of_two_calls_is_audited_for_itself() -> None:
    calls = []

    def second(kernel: Callable[..., Any], this: torch.Tensor) -> torch.Tensor:
        calls.append(this)
        result: torch.Tensor = kernel(this)
        return result if len(calls) % 2 else result + 1

    with faulty_kernel("cos", second):
        fault = inside(lambda x: (x.cos(), x.cos()), torch.ones(3))
    assert fault is not None
    assert fault.overload == "aten::cos"


def test_random_and_uninitialised_results_are_never_at_fault() -> None:
    def call(x: torch.Tensor) -> list[torch.Tensor]:
        return [
            torch.rand_like(x),
            torch.bernoulli(x),
            torch.empty_like(x),
            torch.empty(5, dtype=torch.bool).to(x.device),
        ]

    assert inside(call, torch.full((5,), 0.5)) is None


def test_a_case_draws_the_same_numbers_with_and_without_a_look_inside() -> None:
    torch.manual_seed(0)
    plain = torch.rand(3)
    torch.manual_seed(0)
    seen = []

    def call(x: torch.Tensor) -> torch.Tensor:
        torch.manual_seed(0)
        x.exp()
        seen.append(torch.rand(3))
        return x

    with faulty_kernel("exp", scaled):
        inside(call, torch.ones(3))
    assert all(torch.equal(drawn, plain) for drawn in seen)


def test_a_reading_of_gradients_sees_the_devices_own_threads() -> None:
    weight = torch.randn(4, requires_grad=True)
    with faulty_kernel("silu_backward", scaled):
        fault = inside(torch.nn.functional.silu, weight, differentiable=True)
    assert fault is not None
    assert fault.overload == "aten::silu_backward"


def test_a_number_that_a_composite_wraps_into_a_tensor_is_given_on_as_one() -> None:
    def raises(kernel: Callable[..., Any], *args: Any, **kwargs: Any) -> torch.Tensor:
        raise ValueError("no such luck")

    with faulty_kernel("gather", raises):
        fault = inside(torch.take_along_dim, torch.randn(5, 5), torch.tensor([[1, 2]]), 1)
    assert fault == AtFault("aten::gather", "(float32[5, 5], 1, int64[5, 2])", "raises ValueError: no such luck")


def test_one_look_audits_no_more_than_its_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mpsmith.audit.judging.inner_calls.MOST_CALLS", 2)
    with faulty_kernel("cos", scaled):
        assert inside(lambda x: x.exp().exp().cos(), torch.ones(3)) is None
        assert inside(lambda x: x.exp().cos(), torch.ones(3)) is not None
    monkeypatch.setattr("mpsmith.audit.judging.inner_calls.MOST_ELEMENTS", 2)
    with faulty_kernel("cos", scaled):
        assert inside(torch.cos, torch.ones(3)) is None


def test_factory_functions_are_not_blamed_for_random_numbers() -> None:
    def ignores_the_seed(kernel: Callable[..., Any], x: Any, low: float = 0.0, high: float = 1.0, **_: Any) -> Any:
        own = torch.Generator(device="mps")
        own.manual_seed(3)
        return kernel(x, low, high, generator=own)

    source = case_sources(())["schema random"]
    key = GroupKey("schema random", "uniform_", "", "float32", "fallback")
    draws = {p: case for p, case in make_cases(source, key, Samples.DEFAULT, 0).items() if case.distribution}
    with faulty_kernel("uniform_", ignores_the_seed):
        faults = [fault_inside(case, CounterRecorder(), 0, str(position)) for position, case in draws.items()]
    assert faults
    assert {fault.overload for fault in faults if fault} <= {"aten::uniform_"}


def test_which_cases_are_looked_into_depends_on_the_cases_alone(tmp_path: Path) -> None:
    looked: list[set[tuple[GroupKey, int]]] = []
    for workers in (1, 2):
        settings = Settings(
            ops=("triu", "tril"),
            dtypes=("float32", "float16"),
            sources=("schema",),
            device=DeviceKind.SIMULATED,
            workers=workers,
            faults=("aten::triu: values", "aten::tril: values"),
        )
        path = tmp_path / f"{workers}.sqlite"
        run = run_audit(settings, path, resume=False, say=lambda text: None)
        with Store.open(path) as store:
            looked.append({(case.group, case.position) for case in store.cases(run.id) if case.looked_inside})
    assert looked[0]
    assert looked[0] == looked[1]


def test_a_triangle_is_written_into_any_strides() -> None:
    out, ones = torch.empty_strided((3, 3, 5, 5), (1, 3, 9, 45)), torch.ones(3, 3, 5, 5)
    assert torch.equal(torch.triu(ones, out=out), ones.triu())


@pytest.mark.parametrize("call", [torch.softmax, torch.log_softmax])
def test_a_softmax_is_written_into_any_strides(call: Callable[..., torch.Tensor]) -> None:
    x, around = torch.randn(3, 4), torch.zeros(3, 8)
    assert torch.equal(call(x, 1, out=around[:, :4]), call(x, 1))
    assert torch.equal(call(x, 1, out=torch.zeros(4, 3).t()), call(x, 1))
    assert not around[:, 4:].any()


@pytest.mark.parametrize("reduction", [0, 1, 2])
@pytest.mark.parametrize("shape", [(), (0,), (3, 4)])
def test_a_loss_is_that_of_all_elements(reduction: int, shape: tuple[int, ...]) -> None:
    loss, (x, target) = torch.ops.aten.binary_cross_entropy, torch.rand(2, 3, 4)
    assert torch.equal(loss(x, target, None, reduction, out=torch.zeros(shape)), loss(x, target, None, reduction))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
def test_a_last_offset_ends_the_last_bag(mode: str, dtype: torch.dtype) -> None:
    indices, weight, offsets = torch.tensor([0, 1, 2]), torch.rand(4, 4).to(dtype), torch.tensor([0, 2])
    bags, last = torch.nn.functional.embedding_bag, {"mode": mode, "include_last_offset": True}
    assert torch.equal(bags(indices, weight, offsets, **last), bags(indices[:2], weight, offsets, **last))
    if mode == "sum":
        last["per_sample_weights"] = torch.rand(3).to(dtype)
        expected = bags(indices[:2], weight, offsets, **{**last, "per_sample_weights": last["per_sample_weights"][:2]})
        assert torch.equal(bags(indices, weight, offsets, **last), expected)


@pytest.mark.parametrize("dim", [0, 2])
def test_a_weight_norm_reads_its_inputs_by_their_strides(dim: int) -> None:
    v, g = torch.randn(4, 3, 5).transpose(0, 2), torch.randn(5 if dim == 0 else 4, 2)[:, :1]
    g = g.reshape(-1, 1, 1) if dim == 0 else g.reshape(1, 1, -1)
    g = torch.stack((g, torch.full_like(g, 7.0)), -1)[..., 0]
    assert not g.is_contiguous()
    result = torch.ops.aten._weight_norm_interface(v, g, dim)
    expected = torch.ops.aten._weight_norm_interface(v.contiguous(), g.contiguous(), dim)
    assert all(map(torch.equal, result, expected))
