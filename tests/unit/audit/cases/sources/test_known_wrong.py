"""The known-wrong corpus: every report is valid and can be called, mistakes have a line, and YAML is all one writes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from mpsmith.audit.cases.sources import known_wrong as source
from mpsmith.audit.cases.sources import large
from mpsmith.audit.cases.sources.known_wrong import KnownWrongSource, argument, in_place, into, resolved, tensor
from mpsmith.audit.cases.sources.large import LargeSource
from mpsmith.audit.model.case import Case, CaseSource, make_cases
from mpsmith.audit.model.selection import DTYPES, Samples
from mpsmith.audit.model.verdicts import CaseVerdict, Outcome
from mpsmith.audit.running.reproduction.script import script_of
from mpsmith.cli.registry import app
from mpsmith.errors import MpsmithError
from mpsmith.registry import known_wrong
from mpsmith.registry.files import load as load_registry
from mpsmith.registry.known_case import TensorInput, plain_value
from mpsmith.registry.known_wrong import PACKAGED, KnownReport, examine
from support.commands import output, typed

REPORT = """\
150967:
  summary: where reads its condition in memory order.
  class: wrong result
  operators: [aten::where.self]
  first_affected: 2.7.0
  last_affected: 2.8.0
  cases:
    - call: torch.where
      args:
        - {dtype: bool, values: [[true, false], [false, true]], views: [{transpose: [0, 1]}]}
        - {dtype: int64, values: [[0, 0], [0, 1]]}
        - 0
"""


@pytest.fixture(scope="module")
def packaged() -> dict[int, KnownReport]:
    return known_wrong.load()


def problems_of(folder: Path, text: str) -> list[str]:
    (folder / "reports.yaml").write_text(text)
    return [str(problem) for problem in examine(folder)[1]]


# ---- what ships


def test_the_corpus_is_valid_and_names_operators_that_exist(packaged: dict[int, KnownReport]) -> None:
    _, problems = examine(PACKAGED, list(load_registry()))
    assert problems == []
    assert len(packaged) >= 100
    assert len({name.split(".")[0] for report in packaged.values() for name in report.operators}) >= 60


def test_every_call_of_the_corpus_exists_in_this_torch(packaged: dict[int, KnownReport]) -> None:
    missing = [case.call for report in packaged.values() for case in report.cases if resolved(case.call) is None]
    assert missing == []


def test_every_kind_of_wrong_and_every_form_has_a_report(packaged: dict[int, KnownReport]) -> None:
    assert {report.wrong_class for report in packaged.values()} == {
        *("wrong result", "wrong shape", "wrong gradient", "abort", "refuses", "missing error", "memory corruption")
    }
    forms = {case.form for report in packaged.values() for case in report.cases}
    assert forms == {"functional", "out", "in-place", "backward"}


def test_the_cases_run_on_the_cpu_or_are_refused_by_it() -> None:
    corpus = KnownWrongSource()
    for key in corpus.groups():
        assert key.dtype in DTYPES
        for case in make_cases(corpus, key, Samples.QUICK, 0).values():
            assert key.variant in case.title
            if case.errors_count:
                with pytest.raises((RuntimeError, IndexError)):
                    case.call(*case.args, **case.kwargs)
            else:
                case.call(*case.args, **case.kwargs)


def test_cases_that_need_much_memory_are_separate(packaged: dict[int, KnownReport]) -> None:
    large = {f"#{n}" for n, report in packaged.items() if any(case.memory_gib for case in report.cases)}
    assert large
    assert {key.variant for key in KnownWrongSource(large=True).groups()} == large
    assert large.isdisjoint(key.variant for key in KnownWrongSource().groups())


# ---- writing one


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ("summary:", "sumary:", ":2:3: 150967: unknown key 'sumary' (did you mean summary?)"),
        ("class: wrong result", "class: wrong reslt", ":3:10: 150967: 'wrong reslt' is not a value of class"),
        ("[aten::where.self]", "[]", ":4:14: 150967: operators is empty"),
        ("aten::where.self", "where", ":4:15: 150967: 'where' does not fit"),
        ("torch.where", "os.system", ":8:13: 150967: 'os.system' does not fit call"),
        ("last_affected: 2.8.0", "last_affected: 2.6.1", "first_affected 2.7.0 comes after last_affected 2.6.1"),
        ("views: [{transpose", "view: [{transpose", ":10:65: 150967: unknown key 'view' (did you mean views?)"),
        ("{transpose: [0, 1]}", "{transpos: [0, 1]}", "unknown key 'transpos' (did you mean transpose?)"),
        ("{transpose: [0, 1]}", "{transpose: [0, 1], conj: true}", "a view is one step"),
        ("dtype: int64", "dtype: int65", "'int65' is not a value of dtype"),
        ("dtype: int64", "fill: ones", "a tensor has a fill or values, not both"),
        ("dtype: int64, values: [[0, 0], [0, 1]]", "dtype: int64", "a tensor needs its shape or its values"),
        ("dtype: int64, values: [[0, 0], [0, 1]]", "shape: [2], fill: rann", "(did you mean randn or rand"),
        ("dtype: int64, values: [[0, 0], [0, 1]]", "shape: [2], fill: integers", "'integers' and its limit 'below'"),
        ("call: torch.where", "call: torch.where\n      form: out", "'out' and the tensors under 'out' go together"),
        ("call: torch.where", "call: torch.where\n      form: backward", "needs a tensor with requires_grad: true"),
        ("150967:", "issue-1:", ":1:1: issue-1: the key is the number of an issue"),
        ("        - 0\n", "        - 0\n150967:\n  class: abort\n", "the key '150967' occurs twice"),
    ],
)
def test_a_mistake_is_named_with_its_line(tmp_path: Path, before: str, after: str, expected: str) -> None:
    assert before in REPORT
    problems = problems_of(tmp_path, REPORT.replace(before, after, 1))
    assert any(expected in problem for problem in problems), problems
    assert all(problem.startswith(str(tmp_path / "reports.yaml")) for problem in problems)


def test_an_issue_has_one_entry_over_all_files(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(REPORT)
    assert problems_of(tmp_path, REPORT) == [
        f"{tmp_path / 'reports.yaml'}:1:1: 150967: the issue has an entry already, at {tmp_path / 'a.yaml'}:1"
    ]


def test_a_misspelt_operator_is_named_where_the_operators_are_known(tmp_path: Path) -> None:
    (tmp_path / "reports.yaml").write_text(REPORT.replace("aten::where.self", "aten::whre.self"))
    _, problems = examine(tmp_path, ["aten::where", "aten::mode"])
    assert [str(p).rpartition("reports.yaml")[2] for p in problems] == [
        ":4:15: 150967: there is no operator aten::whre (did you mean where?)"
    ]


def test_a_report_is_added_by_writing_yaml_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "known_wrong").mkdir()
    (tmp_path / "known_wrong" / "mine.yaml").write_text(REPORT.replace("150967", "999999"))
    monkeypatch.setenv("MPSMITH_REGISTRY", str(tmp_path))
    corpus = KnownWrongSource()
    (key,) = [key for key in corpus.groups() if key.variant == "#999999"]
    assert (key.operator, key.dtype) == ("where", "bool")
    (case,) = corpus.cases(key, Samples.DEFAULT)
    assert case.title == "issue #999999, wrong result"
    assert case.call(*case.args).tolist() == [[0, 0], [0, 1]]


def test_check_and_show_know_the_corpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MPSMITH_REGISTRY", str(tmp_path))
    (tmp_path / "w.yaml").write_text("aten::where:\n  owner: ada\n")
    (tmp_path / "known_wrong").mkdir()
    file = tmp_path / "known_wrong" / "mine.yaml"
    file.write_text(REPORT)
    checked = typed(app, "check")
    assert (checked.exit_code, checked.output) == (0, "1 valid entry, 1 known wrong report, 0 problems\n")
    shown = output(app, "show", "where")
    assert "#150967 wrong result, torch 2.7.0 to 2.8.0: where reads its condition" in shown
    file.write_text(REPORT.replace("class", "clas"))
    checked = typed(app, "check")
    assert checked.exit_code == 1
    assert "mine.yaml:3:3: 150967: unknown key 'clas' (did you mean class" in checked.output


# ---- from data to calls


@pytest.mark.parametrize(
    ("text", "value"),
    [("3", 3), ("-2", -2), ("0.5", 0.5), ("1e-7", 1e-7), ("-inf", float("-inf")), ("true", True), ("mean", "mean")],
)
def test_a_scalar_has_the_type_of_its_text(text: str, value: Any) -> None:
    assert plain_value(text) == value
    assert type(plain_value(text)) is type(value)
    assert plain_value(None) is None
    assert plain_value("1+2j") == 1 + 2j


@pytest.mark.parametrize(
    ("view", "expected"),
    [
        ({"transpose": ["0", "1"]}, lambda x: x.t()),
        ({"permute": ["1", "0"]}, lambda x: x.permute(1, 0)),
        ({"slice": ["1", None, None, "2"]}, lambda x: x[:, ::2]),
        ({"slice": ["-1", "1", "3", "1"]}, lambda x: x[..., 1:3]),
        ({"select": ["0", "1"]}, lambda x: x[1]),
        ({"unsqueeze": "0"}, lambda x: x[None]),
        ({"reshape": ["4", "3"]}, lambda x: x.reshape(4, 3)),
        ({"as_strided": [["2", "2"], ["1", "3"], "1"]}, lambda x: x.as_strided((2, 2), (1, 3), 1)),
        ({"neg": "true"}, lambda x: torch._neg_view(x)),
    ],
)
def test_a_view_is_torchs_own(view: dict[str, Any], expected: Any) -> None:
    made = tensor(TensorInput.model_validate({"shape": ["3", "4"], "fill": "arange", "views": [view]}))
    wanted = expected(torch.arange(12.0).reshape(3, 4))
    assert torch.equal(made, wanted)
    assert (made.stride(), made.storage_offset(), made.is_neg()) == (
        *(wanted.stride(), wanted.storage_offset()),
        wanted.is_neg(),
    )


@pytest.mark.parametrize(
    ("fill", "holds"),
    [
        ("zeros", lambda x: x.eq(0).all()),
        ("2.5", lambda x: x.eq(2.5).all()),
        ("permutation", lambda x: sorted(x.flatten().tolist()) == list(range(9))),
        ("well conditioned", lambda x: torch.linalg.cond(x) < 50),
        ("rand", lambda x: (x >= 0).all() and (x < 1).all()),
    ],
)
def test_fills(fill: str, holds: Any) -> None:
    assert holds(tensor(TensorInput.model_validate({"shape": ["3", "3"], "fill": fill})))


TWO = ["2"]


def test_values_repeat_to_fill_a_shape_and_nested_arguments_are_made() -> None:
    repeated = TensorInput.model_validate({"shape": ["2", "3"], "dtype": "bool", "values": ["true", "false"]})
    assert tensor(repeated).tolist() == [[True, False, True], [False, True, False]]
    report = KnownReport.model_validate(
        {
            "issue": 1,
            "summary": "x",
            "class": "abort",
            "operators": ["aten::mul"],
            "cases": [
                {
                    "call": "torch.mul",
                    "args": [{"torch": "int8"}, {"slice": [None, "2", None]}, {"tuple": ["1"]}, ["2"]],
                }
            ],
        }
    )
    made = [argument(value) for value in report.cases[0].args]
    assert made == [torch.int8, slice(None, 2, None), (1,), [2]]


def test_a_write_outside_the_target_is_detected() -> None:
    base = torch.zeros(6)

    def careless(x: torch.Tensor) -> torch.Tensor:
        x.fill_(1)
        base[0] = 5
        return x

    target, same, storage = in_place(careless)(base[2:4])
    assert (target.tolist(), same, storage.tolist()) == ([1, 1], True, [5, 0, 1, 1, 0, 0])
    out = torch.zeros(2, 4)
    outs, storages = into(torch.neg)(torch.ones(2, 2), out=out[:, 1:3])
    assert outs[0].tolist() == [[-1, -1], [-1, -1]]
    assert storages[0].tolist() == [0, -1, -1, 0, 0, -1, -1, 0]


def test_a_call_that_this_torch_lacks_is_skipped_with_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source, "resolved", lambda name: None)
    corpus = KnownWrongSource()
    key = next(iter(corpus.groups()))
    cases: list[Case] = list(corpus.cases(key, Samples.DEFAULT))
    assert all("has no torch." in case.skipped for case in cases)


def test_the_example_of_the_documentation_is_valid(tmp_path: Path) -> None:
    text = (Path(known_wrong.__file__).parents[1] / "docs" / "registry.md").read_text(encoding="utf-8")
    example = text[text.index("150967:\n") :].split("```")[0]
    assert problems_of(tmp_path, example) == []


def test_a_plain_call_is_printed_as_a_program_for_the_issue() -> None:
    corpus = KnownWrongSource()
    key = next(key for key in corpus.groups() if key.variant == "#144245")
    (case,) = corpus.cases(key, Samples.DEFAULT)
    program = script_of(case, key, Outcome(CaseVerdict.WRONG, message="NaN"), simulated=False)
    assert "torch.nn.functional.interpolate(*args, **kwargs)" in program
    assert "issue #144245" in program
    scope: dict[str, Any] = {}
    exec(program.split("for device in")[0], scope)
    assert scope["run"]("cpu").shape == (3, 1, 3)


def test_a_call_that_needs_more_than_a_line_is_not(tmp_path: Path) -> None:
    corpus = KnownWrongSource()
    key = next(key for key in corpus.groups() if key.variant == "#163327")
    (case,) = corpus.cases(key, Samples.DEFAULT)
    with pytest.raises(MpsmithError, match="a few lines of Python cannot repeat this call"):
        script_of(case, key, Outcome(CaseVerdict.WRONG), simulated=False)


@pytest.mark.parametrize(
    "made", [KnownWrongSource(), KnownWrongSource(large=True), LargeSource()], ids=lambda made: made.name
)
def test_the_strict_mode_has_the_same_cases(made: CaseSource, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (source, large):
        monkeypatch.setattr(module, "lacking_memory", lambda need: "too large for a test")
    key = next(iter(made.groups()))
    strict = make_cases(made, replace(key, mode="strict"), Samples.DEFAULT, 0)
    assert [case.title for case in strict.values()] == [
        case.title for case in make_cases(made, key, Samples.DEFAULT, 0).values()
    ]
    assert strict
