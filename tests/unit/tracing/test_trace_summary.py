"""The summary of a recording: rows by site, the sentence that helps, annotations."""

from __future__ import annotations

import json

import pytest

from mpsmith.tracing import annotations, json_form, text
from mpsmith.tracing.recording import CallKind, CallOperand, CallRow, CallSite, Recording
from mpsmith.tracing.summary import advice, is_allowed, summarize

LINE_7, LINE_9 = CallSite("/somewhere/train.py", 7, "model.1"), CallSite("/somewhere/train.py", 9)


def calls(
    overload: str, kind: CallKind, site: CallSite, number: int, backward: bool = False, width: int = 2
) -> CallRow:
    operands = (CallOperand("float32", (width, 3)),)
    return CallRow(overload, kind, backward, site, operands, number, 0, 24 * number, 12 * number, 1000 * number, 1)


def recording() -> Recording:
    rows = [
        calls("aten::softshrink.out", CallKind.fallback, LINE_7, 2),
        calls("aten::softshrink.out", CallKind.fallback, LINE_7, 1, width=5),
        calls("aten::linalg_foo", CallKind.fallback, LINE_9, 4, backward=True),
        calls("aten::mm", CallKind.native, LINE_7, 10),
        calls("aten::_local_scalar_dense", CallKind.synchronisation, LINE_9, 1),
    ]
    facts = {1: {"simulated": True, "profile": "2.0.1", "arguments": ["train.py"]}}
    return Recording(rows, facts, span=(0, 10_000))


def test_calls_are_put_together_by_overload_and_place() -> None:
    summary = summarize(recording(), kernels=["aten::softshrink"], allowed=["linalg_foo"])
    assert [(at.overload, at.calls, at.bytes_to_cpu, len(at.operands)) for at in summary.fallbacks] == [
        ("aten::linalg_foo", 4, 96, 1),
        ("aten::softshrink.out", 3, 72, 2),
    ]
    assert [at.overload for at in summary.waits] == ["aten::_local_scalar_dense"]
    assert summary.forbidden == ("aten::softshrink.out",)
    assert (summary.elapsed, summary.share) == (10_000, 0.7)


@pytest.mark.parametrize(
    ("kernels", "sentence"),
    [
        (
            ["aten::softshrink"],
            "1 of 2 operators that fall back is replaced by `import mpsmith.kernels`; aten::linalg_foo is not; "
            "torch 2.2.2 runs aten::softshrink on mps: `pip install --upgrade 'torch>=2.2.2'`",
        ),
        (
            ["aten::softshrink", "aten::linalg_foo"],
            "All 2 operators that fall back are replaced by `import mpsmith.kernels`; torch 2.2.2 runs "
            "aten::softshrink on mps: `pip install --upgrade 'torch>=2.2.2'`",
        ),
        (
            [],
            "mpsmith has no kernel for aten::linalg_foo, aten::softshrink yet; torch 2.2.2 runs aten::softshrink on "
            "mps: `pip install --upgrade 'torch>=2.2.2'`",
        ),
    ],
    ids=["some", "all", "none"],
)
def test_advice_names_the_kernels_that_help(kernels: list[str], sentence: str) -> None:
    assert advice(summarize(recording(), kernels=kernels)) == sentence


def test_a_gap_of_this_torch_is_scaffolded() -> None:
    gap = "aten::_jagged_to_padded_dense_forward"
    site = CallSite("train.py", 1)
    row = CallRow(gap, CallKind.fallback, False, site, (), 1, 0, 0, 0, 5, 1)
    seen = Recording(rows=[row], facts={1: {"torch": "2.13.0+cpu", "profile": "2.13.0", "simulated": True}})
    assert advice(summarize(seen)) == f"mpsmith has no kernel for {gap} yet; start one: `mpsmith scaffold {gap}`"


def test_cheap_fallbacks_are_not_a_bottleneck_on_a_real_device() -> None:
    seen = recording()
    seen.span = (0, 2 * 10**9)
    assert "not your bottleneck" not in text.as_text(summarize(seen))
    seen.facts[1]["simulated"] = False
    shown = text.as_text(summarize(seen))
    assert "not your bottleneck, 0.0% of the time together: aten::linalg_foo, aten::softshrink.out" in shown


def test_copies_to_mps_are_summed_up() -> None:
    seen = recording()
    seen.rows.append(
        CallRow("aten::_to_copy", CallKind.to_mps, False, CallSite("train.py", 3), (), 2, 0, 0, 2048, 5, 1)
    )
    assert "data were copied to mps 2 times, 2.0 KiB; the most at train.py:3" in text.as_text(summarize(seen))


def test_an_operator_or_an_overload_is_allowed_by_name() -> None:
    assert is_allowed("aten::mode.values", ["mode"])
    assert is_allowed("aten::mode.values", ["aten::mode.values"])
    assert not is_allowed("aten::mode.values", ["aten::mode.dimname", "mod"])


def test_the_tables_name_lines_modules_and_shapes() -> None:
    shown = text.as_text(summarize(recording(), kernels=["aten::softshrink"]))
    assert "SIMULATED mps device with the coverage of torch 2.0.1" in shown
    assert "7 of 18 calls on mps fell back to the CPU, 70% of the time" in shown
    (row,) = [" ".join(line.split()) for line in shown.splitlines() if line.startswith("aten::softshrink.out")]
    assert row == "aten::softshrink.out 3 /somewhere/train.py:7 model.1 float32[2, 3] and 1 other 72 B 36 B 0.00 30.0%"
    assert "backward of /somewhere/train.py:9" in shown


def test_distinguishes_nothing_recorded_from_nothing_called() -> None:
    assert "did not import torch" in text.as_text(summarize(Recording()))
    assert "called nothing on mps" in text.as_text(summarize(Recording(facts={1: {"simulated": False}})))


def test_reports_dropped_calls_and_calls_without_a_line() -> None:
    seen = recording()
    seen.dropped_calls = 5
    seen.facts[1] |= {"counted_fallbacks": {"aten::mode": 2, "aten::softshrink.out": 3}, "late_variable": "train.py:3"}
    shown = text.as_text(summarize(seen))
    assert "dropped: 5 calls" in shown
    assert "aten::mode fell back 2 times more where no line is known" in shown
    assert "train.py:3 sets PYTORCH_ENABLE_MPS_FALLBACK after torch was imported" in shown


def test_annotations_have_githubs_format() -> None:
    summary = summarize(recording(), allowed=["softshrink"])
    assert list(annotations.github(summary, failing=True)) == [
        "::error file=/somewhere/train.py,line=9,title=mps fallback::aten::linalg_foo ran on the CPU 4 times in its "
        "backward",
        "::warning file=/somewhere/train.py,line=7,title=mps fallback::aten::softshrink.out ran on the CPU 3 times",
    ]


def test_json_has_every_call_site_with_its_operands() -> None:
    data = json_form.to_json(summarize(recording()))
    row = data["fallbacks"][1]
    assert (row["file"], row["line"], row["module"], row["calls"]) == ("/somewhere/train.py", 7, "model.1", 3)
    assert row["operands"][0] == {"calls": 2, "tensors": [{"dtype": "float32", "shape": [2, 3]}]}
    assert [fallback["share"] for fallback in data["fallbacks"]] == [0.4, 0.3]
    assert data["calls"]["fallback"] == 7
    assert json.dumps(data)
