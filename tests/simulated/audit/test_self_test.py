"""The self-test finds what was put in, blames nothing else, and notices when any part of the judge is taken out."""

from __future__ import annotations

import gc
import re
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
import torch

from mpsmith.audit.cases.sources import case_sources, derived, forms, layouts, random, repetition
from mpsmith.audit.findings.explanations import Explainer
from mpsmith.audit.judging import agreement, call_tracer, compare, judge
from mpsmith.audit.judging.agreement import Comparison
from mpsmith.audit.judging.call_tracer import CallTracer
from mpsmith.audit.judging.compare import TOLERANCES, Agreement, Difference
from mpsmith.audit.judging.judge import Trial
from mpsmith.audit.model.case import make_cases
from mpsmith.audit.model.selection import Samples
from mpsmith.audit.model.verdicts import CaseVerdict, Outcome
from mpsmith.audit.releases.surface import installed_surface
from mpsmith.audit.running.worker import freeze_once
from mpsmith.audit.self_test.whole_run import SelfTestOptions, self_test
from mpsmith.audit.store.records import StoredCase
from mpsmith.cli.printing import print_json
from mpsmith.cli.self_test import _as_json
from mpsmith.simulator.device.faults import Fault, inject
from mpsmith.simulator.fallback_recorders import CounterRecorder
from support.json_document import documented

pytestmark = pytest.mark.usefixtures("no_faults")

EXPLAINER = Explainer(installed_surface(), simulated=True)
SOURCES = ("opinfo", "layouts", "forms", "errors", "sizes", "random", "repetition")
DTYPES = ("float32", "float16")
VALUES = r"elements differ"
RELATIVE, ABSOLUTE = (3 * limit for limit in TOLERANCES[torch.float32])

# A fault of each kind that the judge has a part for: the entry that is audited, the fault, and what the audit says.
FAULTS: dict[str, tuple[str, str, str]] = {
    "wrong values": ("exp", "aten::exp: values", VALUES),
    "wrong values, non-contiguous input": ("cos", "aten::cos: values when non_contiguous(self)", VALUES),
    "wrong values, input at an offset": ("tanh", "aten::tanh: values when offset(self)", VALUES),
    "wrong values, expanded input": ("sin", "aten::sin: values when expanded(self)", VALUES),
    "wrong values, empty input": ("sum", "aten::sum.dim_IntList: values when empty(self)", VALUES),
    "wrong values, one dtype": ("log_softmax", "aten::_log_softmax: values when dtype(self, float16)", VALUES),
    "wrong values, above a size": ("floor", "aten::floor: values when above(self, 65536)", VALUES),
    "wrong gradient": ("nn.functional.gelu", "aten::gelu_backward: values", r"gradient \d+: .*differ"),
    "wrong values, out= only": ("log", "aten::log.out: values", VALUES),
    "wrong values, in place only": ("ceil", "aten::ceil_: values", VALUES),
    "wrong values, second call only": ("trunc", "aten::trunc: values when repeated", VALUES),
    "just beyond the tolerance": (
        "neg",
        f"aten::neg: near({RELATIVE}, {ABSOLUTE}) when dtype(self, float32)",
        r"1 of \d+ elements differ",
    ),
    "NaN where finite": ("rsqrt", "aten::rsqrt: nan_result", r"differ.*: nan"),
    "wrong shape": ("asinh", "aten::asinh: wrong_shape", r"shape is"),
    "wrong dtype": ("erfc", "aten::erfc: wrong_dtype", r"dtype is"),
    "wrong stride": ("exp2", "aten::exp2: wrong_stride", r"has stride"),
    "wrong alias": ("unfold", "aten::unfold: copies", r"shares (the|no) memory"),
    "a result in an input's memory": ("digamma", "aten::digamma: aliases", r"shares (the|no) memory"),
    "writes outside its output": (
        "sigmoid",
        "aten::sigmoid.out: writes_outside",
        r"output [23]: 1 of \d+ elements differ",
    ),
    "changes its input": ("logaddexp", "aten::logaddexp: changes_input", r"input \d+ was changed"),
    "result in freed memory": ("cosh", "aten::cosh: freed", r"differ.*: nan"),
    "leaks": ("atanh", "aten::atanh: leaks", r"leaks memory"),
    "ignores the seed": ("randn_like", "aten::normal_: own_seed", r"a seed gives other numbers again"),
    "draws the same numbers again": ("cauchy", "aten::cauchy_: same_draws", r"gives? the same numbers'"),
    "draws from another distribution": ("geometric", "aten::geometric_: larger_of_two", r"distributed unlike"),
    "raises another error": ("scatter", "aten::scatter.src: other_error", r"raises (ValueError|TypeError), the CPU"),
    "falls back unannounced": ("addcmul", "aten::addcmul: on_cpu", r"^$"),
}


@pytest.fixture(scope="module")
def sources():
    by_name = case_sources(())
    for name in SOURCES:
        list(by_name[name].groups())
    freeze_once(set(), "all")  # as a worker does: many collections show a leak
    yield by_name
    gc.unfreeze()


def audited(entry: str, fault: str, sources) -> list[StoredCase]:
    """An operator audited in this process, with the faults that the device has; its sparse forms are left out."""
    cases = []
    tracer = CallTracer() if "on_cpu" in fault else None
    for name in SOURCES:
        keys = [key for key in sources[name].groups() if key.operator == entry and "/" not in key.variant]
        for key in (key for key in keys if key.dtype in DTYPES):
            for position, case in make_cases(sources[name], key, Samples.DEFAULT, 0).items():
                outcome = judge.judge(case, CounterRecorder(), 0, f"{key.label}:{position}", tracer)
                cases.append(StoredCase(0, key, position, outcome, ""))
    return cases


def says(name: str, sources) -> list[StoredCase]:
    """The cases that no rule explains and that say what is wrong, with a fault of that name alone in the device."""
    entry, fault, message = FAULTS[name]
    inject(Fault.parse(fault))
    failing = [case for case in audited(entry, fault, sources) if case.outcome.verdict in ACCUSING]
    speaking = [case for case in failing if re.search(message, case.outcome.message)]
    return [case for case in speaking if EXPLAINER.rule_for(case) is None]


ACCUSING = (CaseVerdict.WRONG, CaseVerdict.FALLBACK)


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_of_each_kind_is_found(name: str, sources) -> None:
    assert says(name, sources)


# ---- the judge with one part taken out


def blinded(beginning: str) -> Callable[[pytest.MonkeyPatch], None]:
    """The comparison of tensors without the differences that begin so."""

    def apply(patch: pytest.MonkeyPatch) -> None:
        def blind(*args, **kwargs):
            result = compare.compare(*args, **kwargs)
            return Agreement(0.0) if isinstance(result, Difference) and result.text.startswith(beginning) else result

        patch.setattr(agreement, "compare", blind)

    return apply


def without(owner: object, name: str, value: object) -> Callable[[pytest.MonkeyPatch], None]:
    return lambda patch: patch.setattr(owner, name, value)


def wider(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(compare, "ULPS", 1e9)  # the absolute part whole, however small a result is
    for dtype, (relative, absolute) in list(compare.TOLERANCES.items()):
        patch.setitem(compare.TOLERANCES, dtype, (10 * relative, 10 * absolute))


def any_error_will_do(trial: Trial, expected: Exception) -> Outcome:
    return Outcome(CaseVerdict.PASSED)


def nan_counts_as_equal(patch: pytest.MonkeyPatch) -> None:
    def lenient(actual, expected, *args, **kwargs):
        if actual.shape == expected.shape and actual.dtype is expected.dtype:
            actual = torch.where(actual.isnan(), expected.to(actual.device), actual)
        return compare.compare(actual, expected, *args, **kwargs)

    patch.setattr(agreement, "compare", lenient)


def unchanged(operator: forms.Call) -> forms.Call:
    return lambda first, *args, **kwargs: first


def most_dimensions(case) -> tuple[int, int] | None:
    """Which tensor is largest, as if an empty one could show anything."""
    tensors = [arg for arg in case.args if isinstance(arg, torch.Tensor)]
    return max((t.dim(), t.numel()) for t in tensors) if tensors else None


def nothing_twice(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(repetition, "distinct", lambda *_: [])


def no_guards(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(forms, "GUARD", 0)
    patch.setattr(forms, "OUT_KINDS", tuple(kind for kind in forms.OUT_KINDS if kind != "every other element"))


ALL_BUT_EXPANDED = tuple(layout for layout in layouts.LAYOUTS if layout is not layouts.expanded)
MUTATIONS: dict[str, tuple[str, Callable[[pytest.MonkeyPatch], None]]] = {
    "values are not compared": ("wrong values", without(compare, "_compare_values", lambda *_: Agreement(0.0))),
    "NaN counts as equal": ("NaN where finite", nan_counts_as_equal),
    "tolerances are ten times as wide": ("just beyond the tolerance", wider),
    "shapes are not compared": ("wrong shape", blinded("shape is")),
    "dtypes are not compared": ("wrong dtype", blinded("dtype is")),
    "strides are not compared": ("wrong stride", without(agreement, "compare_strides", lambda *_: None)),
    "memory is not compared": ("wrong alias", without(agreement, "compare_memory", lambda *_: None)),
    "inputs are not looked at": ("changes its input", without(Comparison, "_arguments", lambda *_: 0.0)),
    "gradients are not compared": ("wrong gradient", without(Comparison, "backward", lambda *_: 0.0)),
    "memory in use is not measured": ("leaks", without(Trial, "leaked_bytes", lambda *_: 0)),
    "distributions are not compared": (
        "draws from another distribution",
        without(agreement, "compare_draws", lambda *_: ""),
    ),
    "seeds are not tried": ("ignores the seed", without(random, "same_bits", lambda *_: True)),
    "types of errors are not compared": ("raises another error", without(Trial, "_judge_error", any_error_will_do)),
    "what goes to the CPU is not watched": ("falls back unannounced", without(call_tracer, "HANDED_TO_CPU", "")),
    "no guards": ("writes outside its output", no_guards),
    "nothing is called twice": ("result in freed memory", nothing_twice),
    "no expanded inputs": (
        "wrong values, expanded input",
        without(layouts, "in_every_layout", partial(layouts.in_every_layout, layouts=ALL_BUT_EXPANDED)),
    ),
    "samples without elements are varied": (
        "wrong values, non-contiguous input",
        without(derived, "_largest", most_dimensions),
    ),
    "no out= forms": ("wrong values, out= only", without(forms, "OutForm", lambda *_: NoForm())),
    "no in-place form": ("wrong values, in place only", without(forms, "in_place", unchanged)),
}


class NoForm:
    title = "plain"

    def of(self, operator: forms.Call) -> forms.Call:
        return operator


@pytest.mark.parametrize("mutation", MUTATIONS)
def test_a_judge_without_one_of_its_parts_misses_the_fault(
    mutation: str, sources, monkeypatch: pytest.MonkeyPatch
) -> None:
    name, apply = MUTATIONS[mutation]
    apply(monkeypatch)
    assert says(name, sources) == []


# ---- the whole of it, in workers


@pytest.mark.rehearsal  # minutes, so the nightly run has it
def test_a_small_self_test_finds_leaks_and_crashes(tmp_path: Path) -> None:
    options = SelfTestOptions(3, seed=5, classes=("aborts", "hangs", "leaks"), workers=2, timeout=10.0)
    done = self_test(options, tmp_path, lambda text: None)
    results = [(finding.planted.class_name, finding.result) for finding in done.findings]
    assert sorted(results) == [("aborts", "found"), ("hangs", "found"), ("leaks", "found")]
    assert done.false_alarms == []


@pytest.mark.timeout(1500)  # the first look at what calls what, the clean audit and those with faults take minutes
def test_a_sample_of_generated_faults_is_found(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What `mpsmith self-test --faults 500` measures, on a sample that is too small for its limits."""
    done = self_test(SelfTestOptions(10, seed=9, workers=2), tmp_path, lambda text: None)
    assert len(done.findings) >= 8  # a class of which no fault shows in this torch gives none
    assert done.share("found") >= 0.6, [str(f.planted.fault) for f in done.findings if f.result != "found"]
    assert done.share("misattributed") <= 0.1
    print_json(_as_json(done))
    assert len(documented("self-test", capsys.readouterr().out)["findings"]) == len(done.findings)
