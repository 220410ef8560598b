"""Calls under torch.compile on the simulated device: Inductor's own Metal runs, and what became of it is said."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from mpsmith.audit.compiled.judging import compiled_call
from mpsmith.audit.compiled.verdicts import CompiledOutcome, CompiledVerdict, FaultyStage
from mpsmith.audit.model.case import Case
from mpsmith.simulator import metal
from mpsmith.simulator.fallback_recorders import CounterRecorder


@pytest.fixture(scope="module", autouse=True)
def compile_shader() -> None:
    metal.install()


def compiled(call: Any, *args: Any, **options: Any) -> CompiledOutcome:
    differentiable = any(isinstance(arg, torch.Tensor) and arg.requires_grad for arg in args)
    return compiled_call(Case(call, args, differentiable=differentiable), CounterRecorder(), 0, "test", **options)


class TestLowered:
    def test_forward_and_backward_are_metal(self) -> None:
        result = compiled(lambda x: x.sin() * 2, torch.randn(5, 7, requires_grad=True))
        assert (result.verdict, result.aten, result.graphs) == (CompiledVerdict.METAL, (), 2)
        assert result.outcome.backward
        assert "metal::precise::sin" in result.source

    def test_aten_calls_left_by_inductor_are_named(self) -> None:
        result = compiled(lambda x: (x @ x.t()).relu(), torch.randn(4, 4))
        assert (result.verdict, result.aten) == (CompiledVerdict.METAL_AND_ATEN, ("aten::mm",))
        assert compiled(torch.mm, torch.randn(4, 4), torch.randn(4, 4)).verdict is CompiledVerdict.ATEN

    def test_a_view_has_no_kernel(self) -> None:
        assert compiled(lambda x: x.t(), torch.randn(3, 4)).verdict is CompiledVerdict.NO_KERNEL

    def test_sizes_may_be_symbols(self) -> None:
        result = compiled(lambda x: x * 2 + 1, torch.randn(5, 7), dynamic=True)
        assert result.verdict is CompiledVerdict.METAL
        assert "constant long& xnumel" in result.source  # a static size would be a number in the source


class TestNotLowered:
    def test_dynamo_makes_no_graph(self) -> None:
        result = compiled(torch.nonzero, torch.tensor([0.0, 1.0]))
        assert result.verdict is CompiledVerdict.CANNOT_TRACE
        assert "aten.nonzero" in result.reason

    def test_a_broken_graph_is_counted(self) -> None:
        result = compiled(lambda x: x + 1 if x.sum() > 0 else x - 1, torch.ones(4))
        assert result.verdict is CompiledVerdict.METAL
        assert (result.graphs, len(result.breaks)) == (2, 1)

    def test_more_buffers_than_metal_has(self) -> None:
        result = compiled(lambda *xs: sum(xs), *[torch.randn(8) for _ in range(40)])
        assert result.verdict is CompiledVerdict.REJECTED
        assert "Metal has buffers 0 to 30" in result.reason
        assert result.line == "constant float* in_ptr30,"

    def test_a_call_that_the_cpu_refuses_is_not_evidence(self) -> None:
        result = compiled(lambda x, i: x[i], torch.randn(3), torch.tensor([7]))
        assert result.verdict is CompiledVerdict.REFERENCE_FAILED


class TestMemory:
    def test_a_view_of_an_input_stays_one(self) -> None:
        result = compiled(lambda x: x.t() if x.device.type == "cpu" else x.t().clone(), torch.randn(3, 4))
        assert result.verdict is CompiledVerdict.WRONG
        assert result.reason == "forward: output 0 shares no memory with an input, unlike the CPU's"

    def test_an_input_that_is_handed_through_may_be_copied(self) -> None:
        result = compiled(lambda x: x if x.device.type == "cpu" else x.clone(), torch.randn(3, 4))
        assert result.verdict is CompiledVerdict.METAL

    def test_an_input_that_was_written_is_handed_through_itself(self) -> None:
        result = compiled(lambda x: x.add_(1) if x.device.type == "cpu" else x.add_(1).clone(), torch.randn(3, 4))
        assert result.reason == "forward: output 0 shares no memory with an input, unlike the CPU's"

    def test_equal_outputs_may_become_one(self) -> None:
        assert compiled(lambda x: (x + 1, x + 1), torch.randn(3)).verdict is CompiledVerdict.METAL


class TestWrong:
    def test_narrow_integers_that_do_not_wrap(self) -> None:
        result = compiled(lambda x: (x + x).to(torch.int16), torch.tensor([128, 3], dtype=torch.uint8))
        assert (result.verdict, result.faulty_stage) == (CompiledVerdict.WRONG, FaultyStage.INDUCTOR)
        assert "256, CPU 0" in result.reason

    def test_a_graph_that_differs_on_mps_is_not_blamed_on_the_metal(self) -> None:
        """Traced for mps, batch_norm in evaluation returns statistics that the CPU's leaves empty."""
        statistics = (torch.randn(3), torch.rand(3) + 0.5)
        result = compiled(torch.native_batch_norm, torch.randn(4, 3, 2), None, None, *statistics, False, 0.1, 1e-5)
        assert (result.verdict, result.faulty_stage) == (CompiledVerdict.WRONG, FaultyStage.GRAPH)
        assert result.reason == "forward: output 1: shape is [3], not [0]"

    def test_a_mutated_buffer_is_compared(self) -> None:
        norm = torch.nn.BatchNorm2d(3)

        def train(x: torch.Tensor, mean: torch.Tensor, var: torch.Tensor) -> torch.Tensor:
            return torch.nn.functional.batch_norm(x, mean, var, training=True)

        result = compiled(train, torch.randn(4, 3, 4, 4), norm.running_mean, norm.running_var)
        assert result.verdict is CompiledVerdict.WRONG
        assert "after the call" in result.reason


def test_one_call_leaves_no_header_to_the_next() -> None:
    """Upstream keeps the headers of all kernels of a process in one set."""
    compiled(lambda x, i: x[i] + 1, torch.randn(4), torch.tensor([1, 2]))
    assert "error_buf" not in compiled(torch.sin, torch.randn(4)).source
