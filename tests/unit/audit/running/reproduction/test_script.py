"""A case as a program that needs torch alone: it does to the operator what the case does."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from operator import attrgetter
from typing import Any

import pytest
import torch

from mpsmith.audit.cases.sources.derived import VariedSource
from mpsmith.audit.cases.sources.forms import FORM_FACTOR
from mpsmith.audit.cases.sources.modules import ModuleCall, ModuleSource
from mpsmith.audit.cases.sources.operand_forms import SOUND
from mpsmith.audit.cases.sources.opinfo import OpInfoSource
from mpsmith.audit.compiled.scenarios import SCENARIOS, ScenarioSource
from mpsmith.audit.model import nested as tensors_in
from mpsmith.audit.model.case import Case, make_cases
from mpsmith.audit.model.group import GroupKey
from mpsmith.audit.model.nested import leaves
from mpsmith.audit.model.selection import Samples
from mpsmith.audit.model.verdicts import CaseVerdict, Outcome
from mpsmith.audit.running.reproduction.forms import FORMS
from mpsmith.audit.running.reproduction.script import MOST_ELEMENTS, script_of
from mpsmith.errors import MpsmithError

KEY = GroupKey("layouts", "nn.functional.softshrink", "", "float32", "fallback")
WRONG = Outcome(CaseVerdict.WRONG)
FORMS_SHOWN = ("add", "cummax", "linalg.inv", "nn.functional.relu", "sin")


def written(case: Case, key: GroupKey, outcome: Outcome = WRONG) -> dict[str, Any]:
    """The functions of the program, without its last part, which runs them."""
    scope: dict[str, Any] = {}
    exec(script_of(case, key, outcome, simulated=False).split("for device in (")[0], scope)
    return scope


def tensors(tree: Any) -> list[torch.Tensor]:
    return [leaf for leaf in leaves(tree) if isinstance(leaf, torch.Tensor)]


def test_the_script_runs_with_torch_alone_and_says_that_the_finding_was_simulated() -> None:
    x = torch.tensor([[1.0, float("nan")], [float("-inf"), 0.25]]).t()
    case = Case(torch.nn.functional.softshrink, (x,), {"lambd": 0.5}, title="transposed")
    finding = Outcome(CaseVerdict.WRONG, message='1 of 4 "elements" differ')
    script = script_of(case, KEY, finding, simulated=True)
    assert "SIMULATED" in script
    assert "SIMULATED" not in script_of(case, KEY, finding, simulated=False)
    assert "mpsmith" not in script.split('"""')[2]
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    expected = torch.nn.functional.softshrink(x, 0.5)
    assert str(expected) in result.stdout
    assert "mps " in result.stdout


def test_the_script_keeps_strides() -> None:
    x = torch.arange(6.0).reshape(2, 3).t()
    (made,), _ = written(Case(torch.abs, (x,)), GroupKey("layouts", "abs", "", "float32", "fallback"))["inputs"]("cpu")
    assert made.stride() == x.stride()
    assert torch.equal(made, x)


def test_one_tensor_alone_in_a_layout_or_dtype_is_written_down() -> None:
    key = GroupKey("tensor layouts", "add", "", "float32", "fallback")
    x = torch.arange(6.0).reshape(2, 3)
    scope = written(Case(torch.add, (x, x.t().contiguous().t()), title="tensor 1 transposed"), key)
    assert [t.stride() for t in scope["inputs"]("cpu")[0]] == [(3, 1), (1, 2)]
    mixed = GroupKey("mixed dtypes", "add", "", "float32", "fallback")
    scope = written(Case(torch.add, (x, x.long()), title="tensor 1 int64"), mixed)
    assert [t.dtype for t in scope["inputs"]("cpu")[0]] == [torch.float32, torch.int64]


def test_two_views_of_one_storage_are_not_written_as_two_tensors() -> None:
    key = GroupKey("tensor layouts", "add", "", "float32", "fallback")
    x = torch.arange(6.0)
    for pair in ((x, x), (x[1:], x[:-1])):
        with pytest.raises(MpsmithError, match="two views of one storage cannot be written down"):
            script_of(Case(torch.add, pair), key, WRONG, simulated=False)


def test_a_wrong_gradient_is_shown_by_the_script() -> None:
    case = Case(torch.nn.functional.softshrink, (torch.tensor([1.0, -2.0], requires_grad=True),))
    finding = Outcome(CaseVerdict.WRONG, stage="backward")
    (gradient,) = written(case, KEY, finding)["run"]("cpu")
    assert gradient.tolist() == [1.0, -3.0]


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    """Scripts run in this process, and one turns deterministic algorithms on."""
    yield
    torch.use_deterministic_algorithms(False)


@pytest.fixture(scope="module")
def form_cases() -> list[tuple[GroupKey, Case]]:
    source = VariedSource(FORM_FACTOR, OpInfoSource())
    keys = [GroupKey("forms", operator, "", "float32", "fallback") for operator in FORMS_SHOWN]
    return [(key, case) for key in keys for case in make_cases(source, key, Samples.DEFAULT, 0).values()]


def test_every_form_is_known(form_cases: list[tuple[GroupKey, Case]]) -> None:
    titles = {case.title for _, case in form_cases}
    assert titles == {*FORMS, "autocast float16", "autocast bfloat16", "a number and a 0-dim tensor"}


def test_writes_the_form_of_a_call(form_cases: list[tuple[GroupKey, Case]]) -> None:
    for key, case in form_cases:
        if case.title == "a number and a 0-dim tensor":
            continue
        try:
            expected = case.call(*case.args, **case.kwargs)
        except Exception as error:
            with pytest.raises(type(error)):
                written(case, key)["run"]("cpu")
            continue
        try:
            shown = tensors(written(case, key)["run"]("cpu"))
        except RuntimeError:
            assert (case.title, expected) == ("out= overlaps the input", SOUND)  # torch may refuse it
            continue
        if expected == SOUND:
            expected = attrgetter(key.operator)(torch)(*case.args, **case.kwargs)
        # A form judges what surrounds an output with zeros in its place; the script shows the storage as it is.
        count = 1 if "out=" in case.title or case.title == "in place" else len(tensors(expected))
        torch.testing.assert_close(shown[:count], tensors(expected)[:count], equal_nan=True)


@pytest.mark.parametrize("title", ["out= exact", "out= every other element", "out= transposed", "in place"])
def test_shows_the_memory_around_an_output(title: str, form_cases: list[tuple[GroupKey, Case]]) -> None:
    key, case = next((key, case) for key, case in form_cases if key.operator == "sin" and case.title == title)
    output, *_, storage = written(case, key)["run"]("cpu")
    assert output.untyped_storage().data_ptr() == storage.untyped_storage().data_ptr()
    assert storage.numel() > output.numel() + 2
    if title == "in place":
        assert torch.equal(output, case.args[0].sin())
    assert {storage[0].item(), storage[-1].item()} == {1.0}


def test_a_second_derivative_is_shown_by_its_backward(form_cases: list[tuple[GroupKey, Case]]) -> None:
    key, case = next((k, c) for k, c in form_cases if k.operator == "sin" and c.title == "second derivative")
    (gradient,) = written(case, key, Outcome(CaseVerdict.WRONG, stage="backward"))["run"]("cpu")
    x = case.args[0].detach()
    torch.testing.assert_close(gradient, -2 * x.cos() * x.sin())


def test_an_argument_that_belongs_on_the_host_stays_there() -> None:
    case = Case(torch.add, (torch.ones(2), torch.tensor(1.0)), on_host=frozenset({1}), title="0-dim CPU scalar")
    args, _ = written(case, GroupKey("layouts", "add", "", "float32", "fallback"))["inputs"]("meta")
    assert [arg.device.type for arg in args] == ["meta", "cpu"]


def test_a_factory_runs_with_the_device_as_the_default_one() -> None:
    case = Case(torch.zeros, ([2],), default_device=True)
    assert written(case, GroupKey("opinfo", "zeros", "", "float32", "fallback"))["run"]("meta").device.type == "meta"


def test_an_in_place_foreach_function_is_written_by_its_name() -> None:
    key = GroupKey("opinfo", "_foreach_neg", "/inplace", "float32", "fallback")
    assert "torch._foreach_neg_(*args" in script_of(Case(abs, ([torch.ones(2)],)), key, WRONG, simulated=False)


def test_a_sparse_tensor_is_written_down() -> None:
    sparse = torch.tensor([[0.0, 2.0], [3.0, 0.0]]).to_sparse()
    (made,), _ = written(Case(torch.abs, (sparse,)), KEY)["inputs"]("cpu")
    assert made.layout is torch.sparse_coo
    assert made.is_coalesced()
    assert torch.equal(made.to_dense(), sparse.to_dense())


@pytest.mark.parametrize(
    ("source", "title"), [("forms", "a number and a 0-dim tensor"), ("random", "distribution"), ("repetition", "")]
)
def test_says_when_a_case_has_no_short_script(source: str, title: str) -> None:
    key = GroupKey(source, "abs", "", "float32", "fallback")
    with pytest.raises(MpsmithError, match=r"a few lines of Python cannot repeat this call .*`mpsmith replay`"):
        script_of(Case(torch.abs, (torch.ones(2),), title=title), key, WRONG, simulated=False)


def test_rejects_a_layout_of_gradients() -> None:
    case = Case(torch.abs, (torch.ones(2, requires_grad=True),), cotangent_layout=torch.clone)
    with pytest.raises(MpsmithError, match="layout of gradients"):
        script_of(case, KEY, Outcome(CaseVerdict.WRONG, stage="backward"), simulated=False)
    assert script_of(case, KEY, WRONG, simulated=False)


@pytest.mark.parametrize("argument", [torch.arange(3000), torch.eye(3).to_sparse_csr(), object()])
def test_reports_values_without_a_literal(argument: object) -> None:
    with pytest.raises(MpsmithError, match="cannot be written down"):
        script_of(Case(torch.abs, (argument,)), KEY, WRONG, simulated=False)


@pytest.mark.parametrize(
    "made",
    [
        torch.zeros(3000),
        torch.full((3, 5), float("-inf"), dtype=torch.float16),
        torch.ones(4, 5, dtype=torch.bool).t(),
        torch.tensor([0.0, -0.0] * 10),
        torch.full((9,), 1 + 2j),
    ],
)
def test_writes_tensors_of_one_number(made: torch.Tensor) -> None:
    (again,), _ = written(Case(torch.abs, (made,)), KEY)["inputs"]("cpu")
    assert (again.dtype, again.shape, again.stride()) == (made.dtype, made.shape, made.stride())
    assert torch.equal(again, made)
    assert again.is_complex() or torch.equal(again.signbit(), made.signbit())


def test_a_program_of_many_draws_prints_quantiles() -> None:
    key = GroupKey("compiled situations", "rand_like", "draws: rand_like", "float32", "compiled")
    scope = written(Case(torch.rand_like, (torch.zeros(64, 128),), distribution=True), key)
    torch.manual_seed(0)
    lowest, mean, *_, highest = scope["run"]("cpu")
    assert (lowest, mean, highest) == ("min 0.0001", "mean 0.4990", "max 0.9998")


def test_a_compiled_call_is_compiled_by_the_script_and_shows_its_arguments(monkeypatch: pytest.MonkeyPatch) -> None:
    case = Case(torch.sin, (torch.ones(2),))
    key = GroupKey("opinfo", "sin", "", "float32", "dynamic")
    script = script_of(case, key, WRONG, simulated=True, metal="kernel void f() {\n}")
    assert script.endswith("# The Metal that Inductor generated:\n# kernel void f() {\n# }\n")
    compiled_calls: list[tuple[Any, bool]] = []

    def compile_(call: Any, dynamic: bool) -> Any:
        compiled_calls.append((call, dynamic))
        return torch.cos

    monkeypatch.setattr(torch, "compile", compile_)
    scope: dict[str, Any] = {}
    exec(script.split("for device in (")[0], scope)
    output, args = scope["run"]("cpu")
    assert (torch.equal(output, torch.ones(2).sin()), len(args), compiled_calls) == (True, 1, [])
    assert scope["compiled"](torch.sin, "mps") is torch.cos
    assert compiled_calls == [(torch.sin, True)]


def test_every_compiled_scenario_has_an_equivalent_program() -> None:
    source = ScenarioSource()
    for situation in SCENARIOS:
        key = GroupKey(source.name, situation.operator, situation.variant, situation.dtypes[0], "fallback")
        case = make_cases(source, key, Samples.QUICK, 0)[0]
        too_many = max(t.numel() for t in tensors(case.args)) > MOST_ELEMENTS
        if situation.refused or (too_many and not situation.distribution):
            continue
        expected = case.call(*tensors_in.map_leaves(copied, case.args))
        torch.manual_seed(0)
        again = written(case, key)["run"]("cpu")
        if situation.distribution:
            assert len(again) == 5
            continue
        for actual, other in zip(tensors(again), tensors(expected), strict=True):
            torch.testing.assert_close(actual, other, equal_nan=True)


def test_functions_of_scenarios_are_written_without_types() -> None:
    source = ScenarioSource()
    key = GroupKey(source.name, "nn.functional.batch_norm", "running statistics", "float32", "compiled")
    program = script_of(make_cases(source, key, Samples.QUICK, 0)[1], key, WRONG, simulated=True)
    assert "from torch.nn import functional\n\n\ndef _train(x, mean, var):\n" in program
    assert "compiled(_train, device)(*args, **kwargs)" in program


@pytest.mark.parametrize("stage", ["forward", "backward"])
def test_a_module_is_a_program_with_its_parameters_as_arguments(stage: str) -> None:
    source = ModuleSource()
    for name, variant in (("nn.BatchNorm1d", "train"), ("nn.Linear", "eval")):
        key = GroupKey(source.name, name, variant, "float32", "fallback")
        case = make_cases(source, key, Samples.QUICK, 0)[0]
        shown = written(case, key, Outcome(CaseVerdict.WRONG, stage))["run"]("cpu")
        output = case.call(*tensors_in.map_leaves(copied, case.args), **case.kwargs)
        if stage == "forward":
            torch.testing.assert_close(shown, output)
        else:
            wanting = [t for t in tensors((case.args, case.kwargs)) if t.requires_grad]
            assert [g.shape for g in shown if g is not None] == [t.shape for t in wanting]


def test_a_lazy_module_has_no_program() -> None:
    key = GroupKey("modules", "nn.LazyLinear", "train", "float32", "fallback")
    case = Case(ModuleCall(torch.nn.Linear(2, 2), {}, lazy=True), ({},), {"inputs": (), "keywords": {}})
    with pytest.raises(MpsmithError, match="a few lines of Python cannot repeat this call"):
        script_of(case, key, WRONG, simulated=False)


def copied(value: Any) -> Any:
    return value.detach().clone().requires_grad_(value.requires_grad) if isinstance(value, torch.Tensor) else value
