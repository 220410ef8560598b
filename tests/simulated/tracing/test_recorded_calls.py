"""What a trace records, beside the simulated device's own counters: nothing missed, nothing invented, lines right."""

from __future__ import annotations

import copy
import inspect
import sys
import threading
import tracemalloc
import weakref
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch
from torch import nn

import mpsmith
from mpsmith.simulator.device import loading
from mpsmith.tracing import recorder
from mpsmith.tracing.call_sites import OVERFLOW_SITE, UNKNOWN, CallSites
from mpsmith.tracing.journal import Journal
from mpsmith.tracing.recording import CallKind, Recording
from mpsmith.tracing.session import Trace

# Operators without a kernel for mps in the installed release.
pytestmark = pytest.mark.usefixtures("fallback_enabled", "no_kernels")


@pytest.fixture
def no_kernels() -> Iterator[None]:
    from mpsmith import kernels

    with kernels.use():
        yield


def line_of(function: Callable[..., object], text: str) -> int:
    """The line in this file at which a function holds a text."""
    lines, first = inspect.getsourcelines(function)
    return first + next(number for number, line in enumerate(lines) if text in line)


def counted(recording: Recording, kind: CallKind = CallKind.fallback) -> Counter[str]:
    calls: Counter[str] = Counter()
    for row in recording.rows:
        if row.kind is kind:
            calls[row.overload] += row.calls
    return calls


def device_counted() -> dict[str, int]:
    return {name: calls.fallback for name, calls in loading.counters().items() if calls.fallback}


class Pooled(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.ReLU(), nn.FractionalMaxPool3d(2, output_size=2))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.heaviside(self.layers(x).detach(), x[..., :2, :2, :2].detach()) + self.layers(x)  # in forward


def train(model: nn.Module, x: torch.Tensor) -> None:
    loss = model(x).sum()
    loss.backward()
    loss.item()


def test_forward_and_backward_have_the_line_and_module_of_the_forward() -> None:
    model = Pooled()
    x = torch.rand(1, 2, 4, 4, 4, device="mps", requires_grad=True)
    loading.reset_counters()
    with mpsmith.trace() as t:
        for _ in range(3):
            train(model, x)
    assert counted(t.recording) == device_counted()
    assert t.recording.unseen_fallbacks() == {}
    forward_line = line_of(Pooled, "# in forward")
    places = {(at.overload, at.backward): (at.site.line, at.site.module, at.calls) for at in t.fallbacks}
    pool = "aten::fractional_max_pool3d"
    assert places == {
        (f"{pool}.output", False): (forward_line, "model.layers.1", 6),
        (f"{pool}_backward", True): (forward_line, "model.layers.1", 3),
        ("aten::heaviside.out", False): (forward_line, "model", 3),
    }
    assert {at.site.file for at in t.fallbacks} == {__file__}
    assert [(at.overload, at.site.line, at.calls) for at in t.waits] == [
        ("aten::_local_scalar_dense", line_of(train, "loss.item()"), 3)
    ]


def test_records_every_thread() -> None:
    x = torch.ones(3, device="mps")

    def work() -> None:
        torch.heaviside(x, x)

    loading.reset_counters()
    with mpsmith.trace() as t:
        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert counted(t.recording) == device_counted() == {"aten::heaviside.out": 4}
    (at,) = t.fallbacks
    assert at.site.line == line_of(work, "torch.heaviside")


def test_a_thread_older_than_the_trace_has_no_line() -> None:
    x = torch.ones(3, device="mps")
    begun, go_on = threading.Event(), threading.Event()

    def work() -> None:
        begun.set()
        go_on.wait()
        torch.heaviside(x, x)

    thread = threading.Thread(target=work)
    thread.start()
    begun.wait()
    with mpsmith.trace() as t:
        go_on.set()
        thread.join()
    assert t.recording.unseen_fallbacks() == {"aten::heaviside.out": 1}
    assert "aten::heaviside.out fell back once more where no line is known" in str(t)


def test_the_bytes_are_those_that_the_fallback_copies() -> None:
    x, values = torch.ones(10, device="mps"), torch.ones(10, device="mps")
    with mpsmith.trace() as t:
        torch.heaviside(x, values)
        x.put_(torch.tensor([1], device="mps"), values[:1])
    bytes_of = {at.overload: (at.bytes_to_cpu, at.bytes_to_mps) for at in t.fallbacks}
    assert bytes_of["aten::heaviside.out"] == (3 * 40, 40)
    assert bytes_of["aten::put_"] == (40 + 8 + 4, 40)


def test_copies_and_prints_have_their_lines() -> None:
    x = torch.ones(4, device="mps")

    def waits() -> None:
        x.cpu()  # copies
        repr(x)  # prints
        bool(x[0] > 0)  # asks
        torch.mps.synchronize()  # waits
        torch.ones(8).to("mps")  # the other way

    with mpsmith.trace() as t:
        waits()
    assert {(at.overload, at.kind, at.site.line) for at in t.waits} == {
        ("aten::_to_copy", CallKind.from_mps, line_of(waits, "# copies")),
        ("printing a tensor", CallKind.synchronisation, line_of(waits, "# prints")),
        ("aten::is_nonzero" if _asks_by_is_nonzero(t) else "aten::_local_scalar_dense", CallKind.synchronisation,
         line_of(waits, "# asks")),
        ("torch.mps.synchronize", CallKind.synchronisation, line_of(waits, "# waits")),
    }  # fmt: skip
    (up,) = [row for row in t.recording.rows if row.kind is CallKind.to_mps]
    assert (up.bytes_to_mps, up.site.line) == (32, line_of(waits, "# the other way"))


def test_only_a_mask_as_index_waits() -> None:
    x, integers = torch.arange(4.0, device="mps"), torch.tensor([0, 2], device="mps")
    mask = x > 1
    with mpsmith.trace() as t:
        x[integers]
        x[integers] = 0.0
    assert [at.overload for at in t.waits] == []
    with mpsmith.trace() as t:
        x[mask]
        x[mask] = torch.zeros(2, device="mps")
    overloads = {at.overload for at in t.waits}
    assert "aten::index.Tensor" in overloads
    assert overloads & {"aten::index_put_", "aten::_index_put_impl_"}


def test_the_layers_of_a_loop_have_their_own_paths() -> None:
    net = torch.nn.Sequential(torch.nn.RReLU(), torch.nn.RReLU())
    x = torch.ones(3, device="mps")
    with mpsmith.trace() as t:
        for layer in net:
            x = layer(x)
    assert {row.site.module for row in t.recording.rows} >= {"net.0", "net.1"}


def _asks_by_is_nonzero(t: Trace) -> bool:
    return any(at.overload == "aten::is_nonzero" for at in t.waits)


def test_results_are_those_without_a_trace_where_autocast_works_inside_a_composite() -> None:
    library = torch.library.Library("traced", "FRAGMENT")
    library.define("square(Tensor a) -> Tensor")
    library.impl("square", lambda a: torch.mm(a, a), "CompositeExplicitAutograd")
    a = torch.rand(4, 4, device="mps")
    with torch.autocast("mps"):
        expected = torch.ops.traced.square(a)
        with mpsmith.trace():
            seen = torch.ops.traced.square(a)
    assert expected.dtype == torch.float16
    assert seen.dtype == torch.float16
    assert torch.equal(seen.cpu(), expected.cpu())


def test_an_in_place_call_on_a_view_has_its_own_line_in_backward() -> None:
    w = torch.rand(2, 6, device="mps", requires_grad=True)

    def forward() -> torch.Tensor:
        y = w * 1
        y[:, :2].clamp_(0.5)  # changes a view
        return y * 2

    with mpsmith.trace() as t:
        forward().sum().backward()
    lines = {row.site.line for row in t.recording.rows if row.backward and row.site.line}
    assert line_of(forward, "# changes a view") in lines


def test_a_kernel_that_is_registered_meanwhile_ends_the_fallbacks() -> None:
    from mpsmith import kernels

    x = torch.ones(4, device="mps")
    loading.reset_counters()
    with mpsmith.trace() as t:
        torch.heaviside(x, x)
        with kernels.use("aten::heaviside"):
            torch.heaviside(x, x)
        torch.heaviside(x, x)
    assert counted(t.recording) == device_counted() == {"aten::heaviside.out": 2}


def test_a_refused_call_is_not_a_fallback() -> None:
    loading.set_fallback_enabled(False)
    x = torch.ones(4, device="mps")
    with mpsmith.trace() as t, pytest.raises(NotImplementedError):
        torch.heaviside(x, x)
    assert not t.fallbacks
    assert "aten::heaviside.out was refused" in str(t)


def test_compiled_code_is_traced_and_stays_compiled() -> None:
    graphs = []

    def backend(module: torch.fx.GraphModule, inputs: object) -> Callable[..., object]:
        graphs.append(module)
        return module.forward

    compiled = torch.compile(lambda x: torch.heaviside(x, x) + 1, backend=backend)
    x = torch.ones(5, device="mps")
    with mpsmith.trace() as t:
        compiled(x)
    assert len(graphs) == 1
    assert counted(t.recording) == {"aten::heaviside.out": 1}


def test_a_number_inside_a_composite_operator_is_handed_on() -> None:
    """remainder with a number calls itself with a wrapped one, which torch gives to a mode as a plain number."""
    for x in (torch.arange(5, device="mps"), torch.arange(5.0, device="mps")):
        for divisor in (3, 2.5):
            expected = torch.remainder(x, divisor)
            with mpsmith.trace():
                seen = torch.remainder(x, divisor)
            assert seen.dtype == expected.dtype
            assert torch.equal(seen.cpu(), expected.cpu())


def test_dynamo_leaves_the_recorder_alone() -> None:
    """Of a Sequential that is compiled in place nothing is compiled, and Dynamo looks at each frame inside."""
    from torch._dynamo.utils import counters

    model = nn.Sequential(nn.Linear(6, 6), nn.Softshrink()).to("mps")
    model.compile(backend="eager")
    torch._dynamo.reset()
    counters.clear()
    with mpsmith.trace() as t, torch.no_grad():
        model(torch.ones(2, 6, device="mps"))
    assert counted(t.recording, CallKind.native)["aten::softshrink"] == 1
    assert not counters["graph_break"]


def test_scripted_code_is_traced_by_the_line_that_calls_it_in_backward_too() -> None:
    scripted = torch.jit.script(Scripted())
    x = torch.rand(1, 2, 4, 4, 4, device="mps", requires_grad=True)
    loading.reset_counters()
    with mpsmith.trace() as t:
        scripted(x).sum().backward()  # scripted
    assert counted(t.recording) == device_counted()
    line = line_of(test_scripted_code_is_traced_by_the_line_that_calls_it_in_backward_too, "# scripted")
    pool = "aten::fractional_max_pool3d"
    assert {(at.overload, at.backward): at.site.line for at in t.fallbacks} == {
        (f"{pool}.output", False): line,
        (f"{pool}_backward", True): line,
    }


class Scripted(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        samples = torch.full((1, 2, 3), 0.5, device=x.device)
        return torch.ops.aten.fractional_max_pool3d(x, [2, 2, 2], [2, 2, 2], samples)[0] * 2


def test_many_different_shapes_at_a_line_are_counted_together_and_not_remembered() -> None:
    def call(sizes: range) -> None:
        for size in sizes:
            x = torch.ones(size, device="mps")
            torch.heaviside(x, x)

    own = [tracemalloc.Filter(True, f"{Path(recorder.__file__).parent}/*")]
    with mpsmith.trace() as t:
        tracemalloc.start()
        call(range(1, 41))
        before = tracemalloc.take_snapshot().filter_traces(own)
        call(range(41, 541))
        after = tracemalloc.take_snapshot().filter_traces(own)
        tracemalloc.stop()
    (at,) = t.fallbacks
    assert (at.calls, len(at.rows)) == (540, 17)
    assert at.operands[0] == "others"
    grown = sum(change.size_diff for change in after.compare_to(before, "filename"))
    assert grown < 100 * 500


def test_calls_that_the_journal_has_no_room_for_are_counted_as_dropped_and_not_remembered() -> None:
    x = torch.ones(3, device="mps")

    def seen_in(journal: Journal) -> recorder.CallRecorder:
        seen = recorder.CallRecorder(lambda: journal)
        seen.start()
        for number in range(50):
            exec(compile("torch.heaviside(x, x)", f"made anew {number}", "exec"), {"torch": torch, "x": x})
        seen.stop()
        return seen

    small, large = Journal(rows=6), Journal()
    seen = seen_in(small)
    seen_in(large)
    kept, whole = small.recording(), large.recording()
    assert (len(kept.rows), len(seen._rows)) == (5, 5)
    assert kept.dropped_calls + sum(row.calls for row in kept.rows) == sum(row.calls for row in whole.rows)
    assert kept.dropped_calls > whole.dropped_calls == 0


def test_new_code_gets_new_call_sites_up_to_a_limit() -> None:
    sites = CallSites(limit=10)
    kept = []
    for number in range(40):
        code = compile("found = find(sys._getframe())", f"made anew {number}", "exec")
        kept.append(weakref.ref(code))
        variables = {"find": sites.find, "sys": sys, "found": UNKNOWN}
        exec(code, variables)
        assert (variables["found"] == OVERFLOW_SITE) == (number >= 8)
        del code
    assert str(sites.sites[OVERFLOW_SITE]) == "unknown"
    assert sum(code_of() is not None for code_of in kept) == 8


def test_a_users_profiler_shows_fallbacks_and_copies() -> None:
    x = torch.ones(3, device="mps")
    with torch.profiler.profile() as profiler, mpsmith.trace():
        torch.heaviside(x, x).cpu()  # shown
    line = line_of(test_a_users_profiler_shows_fallbacks_and_copies, "# shown")
    shown = {event.name for event in profiler.events() or () if event.name.startswith("mps ")}
    assert shown == {
        f"mps fallback: aten::heaviside.out at {__file__}:{line}",
        f"mps copy from mps: aten::_to_copy at {__file__}:{line}",
    }


def test_counting_alone_has_no_lines() -> None:
    x = torch.ones(3, device="mps")
    with mpsmith.trace(lines=False) as t:
        for _ in range(3):
            torch.heaviside(x, x)
        other = threading.Thread(target=lambda: [torch.heaviside(x, x), torch.heaviside(x, x)])
        other.start()
        other.join()
    (at,) = t.fallbacks
    assert (at.overload, at.calls, str(at.site)) == ("aten::heaviside.out", 5, "unknown")


def test_parameters_can_be_copied_and_their_data_taken() -> None:
    model = nn.Linear(2, 2).to("mps")
    with mpsmith.trace():
        twin = copy.deepcopy(model)
        model.weight.data.fill_(0)
    assert torch.equal(twin.bias.cpu(), model.bias.cpu())
    assert not torch.equal(twin.weight.cpu(), model.weight.cpu())


def test_a_trace_keeps_the_dispatch_of_ctc_loss() -> None:
    log_probs = torch.randn(10, 2, 5).log_softmax(2).to("mps")
    targets, lengths = torch.tensor([[1, 2], [3, 4]]), (torch.tensor([10, 10]), torch.tensor([2, 2]))

    def loss() -> torch.Tensor:
        return nn.functional.ctc_loss(log_probs, targets, *lengths)

    expected = loss()
    loading.reset_counters()
    with mpsmith.trace() as t:
        seen = loss()
    assert counted(t.recording) == device_counted() == {"aten::_ctc_loss": 1}
    assert torch.equal(seen.cpu(), expected.cpu())
