import json
import sys
from functools import partial
from pathlib import Path
from types import ModuleType

import pytest

from mpsmith.cli.registry import app, sync_store
from mpsmith.registry.files import load
from mpsmith.registry.sync import Measurement
from support import commands
from support.json_document import documented

run = partial(commands.typed, app)
output = partial(commands.output, app)
printed_json = partial(commands.printed_json, app)
error = partial(commands.refusal, app)

TEXT = """\
aten::median:
  owner: ada
  measured:
    simulated:
      torch: 2.13.0
      verdict: native

aten::mode:
  status: missing  # asked for
  issue: 77764
  measured:
    simulated:
      torch: 2.13.0
      verdict: missing
      overloads:
        aten::mode: missing
      dtypes:
        missing: [float32, int64]

aten::mul:
  measured:
    mps:
      torch: 2.13.0
      verdict: wrong
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "operators"
    folder.mkdir()
    (folder / "m.yaml").write_text(TEXT)
    monkeypatch.setenv("MPSMITH_REGISTRY", str(folder))
    return folder


def test_check_of_a_good_registry(folder: Path) -> None:
    assert output("check") == "3 valid entries, 0 problems\n"
    assert printed_json("check") == {"version": 1, "entries": 3, "known_wrong": 0, "problems": [], "drift": []}


def test_check_names_every_problem_and_exits_with_1(folder: Path) -> None:
    (folder / "a.yaml").write_text("aten::add:\n  ownr: x\n  status: fine\n")
    result = run("check")
    assert result.exit_code == 1
    assert result.output.splitlines()[0] == (
        "operators/a.yaml:2:3: aten::add: unknown key 'ownr' (did you mean owner?)"
    )
    assert result.output.splitlines()[-1] == "3 valid entries, 2 problems"
    as_json = run("check", "--json")
    assert as_json.exit_code == 1
    first = documented("registry check", as_json.output)["problems"][0]
    assert (Path(first["file"]).name, first["line"], first["column"]) == ("a.yaml", 2, 3)


def test_check_lists_drift(folder: Path) -> None:
    (folder / "m.yaml").write_text(TEXT.replace("verdict: missing", "verdict: native"))
    assert "drift: 1 status set by people against the measurement\n  aten::mode: marked missing" in output("check")
    (drift,) = printed_json("check")["drift"]
    assert (drift["operator"], drift["status"], drift["verdict"], drift["simulated"]) == (
        "aten::mode",
        "missing",
        "native",
        True,
    )


def test_show(folder: Path) -> None:
    shown = output("show", "mode")
    assert shown.splitlines() == [
        "aten::mode",
        "  status        missing, set by people",
        "  issue         77764",
        "  measured      missing, simulated, coverage of torch 2.13.0, dispatch only",
        "    aten::mode  missing",
        "    missing       float32, int64",
        "  file          operators/m.yaml:8",
        "  answer        does not run on the GPU, torch 2.13.0: mps has no kernel for it: it raises "
        "NotImplementedError, or runs on the CPU with PYTORCH_ENABLE_MPS_FALLBACK=1.",
    ]
    assert "status        native (simulated), as measured" in output("show", "aten::median")
    assert "status        wrong, as measured" in output("show", "mul")


def test_show_as_json(folder: Path) -> None:
    shown = printed_json("show", "mode")
    assert shown["status"] == "missing"
    assert shown["status_from"] == "people"
    assert shown["measured"]["simulated"]["dtypes"] == {"missing": ["float32", "int64"]}
    assert shown["line"] == 8
    assert printed_json("show", "median")["status_from"] == "simulated"


def test_list(folder: Path) -> None:
    lines = output("show").splitlines()
    assert lines[0].split() == ["operator", "status", "measured", "owner", "issue", "kernel"]
    assert [line.split()[0] for line in lines[2:5]] == ["aten::median", "aten::mode", "aten::mul"]
    assert "native (simulated)" in lines[2]
    assert lines[-1] == "3 operators"


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--status", "missing"], ["aten::mode"]),
        (["--status", "missing", "--status", "wrong"], ["aten::mode", "aten::mul"]),
        (["--status", "verified"], []),
        (["mul", "m?de"], ["aten::mode", "aten::mul"]),
        (["aten::m*", "--status", "native"], ["aten::median"]),
    ],
)
def test_list_filters(folder: Path, arguments: list[str], expected: list[str]) -> None:
    assert [entry["operator"] for entry in printed_json("show", *arguments)["rows"]] == expected


def test_list_rejects_unknown_names(folder: Path) -> None:
    assert error("show", "--status", "mising").endswith("(did you mean missing?)")
    assert "no entry for aten::moed*" in error("show", "moed*")


def test_set(folder: Path) -> None:
    printed = output("set", "mode", "status=scaffolded", "owner=ada", "notes=two\nlines", "issue=")
    assert printed.splitlines()[0] == "operators/m.yaml:8: aten::mode: status: scaffolded"
    expected = TEXT.replace(
        "  status: missing  # asked for\n  issue: 77764\n",
        "  status: scaffolded  # asked for\n  owner: ada\n  notes: |-\n    two\n    lines\n",
    )
    assert (folder / "m.yaml").read_text() == expected
    output("set", "mode", "issue=1", "pull-request=2", "kernel=mode", "reason=r")
    entry = load(folder)["aten::mode"]
    assert (entry.issue, entry.pull_request, entry.kernel, entry.reason) == ("1", "2", "mode", "r")


def test_set_refuses_and_changes_nothing(folder: Path) -> None:
    assert error("set", "mode", "measured=").startswith("'measured=' is not FIELD=VALUE; the fields are status, ")
    assert error("set", "mode", "ownr=x").endswith("(did you mean owner?)")
    assert "did you mean missing?" in error("set", "mode", "status=mising")
    assert "needs a reason" in error("set", "mode", "status=not applicable")
    assert "(--add)" in error("set", "sort", "owner=x")
    assert (folder / "m.yaml").read_text() == TEXT


def test_set_adds_on_request(folder: Path) -> None:
    output("set", "torchvision::nms", "owner=x", "--add")
    assert load(folder)["torchvision::nms"].owner == "x"


@pytest.fixture
def audited(monkeypatch: pytest.MonkeyPatch) -> list[Measurement]:
    """What the audit's store gives, without an audit."""
    recorded: list[Measurement] = []
    module = ModuleType("mpsmith.audit.findings.measurements")
    module.measurements = lambda store: recorded if store == Path("a.sqlite") else []  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "mpsmith.audit.findings.measurements", module)
    return recorded


def measured(operator: str, verdict: str, torch: str = "2.13.0") -> Measurement:
    return Measurement(operator, torch, "simulated", torch, {operator: "native"}, verdict)


def test_sync(folder: Path, audited: list[Measurement], capsys: pytest.CaptureFixture[str]) -> None:
    audited += [measured("aten::mode", "native", "2.14.0"), measured("aten::median", "native", "2.9.0")]
    audited += [measured("aten::add", "native")]
    changes = json.loads(json.dumps(sync_store(Path("a.sqlite"), quiet=False)))
    assert capsys.readouterr().out.splitlines() == [
        "registry in operators, measured on the SIMULATED device: "
        "1 added, 1 changed, 0 remeasured with the same finding, 0 unchanged",
        "  aten::mode: missing → native (simulated)",
        "1 operator left as recorded, measured with a newer release",
        "drift: 1 status set by people against the measurement",
        "  aten::mode: marked missing, but native now on the simulated device with the coverage of torch 2.14.0: "
        "it may be closed",
    ]
    assert load(folder)["aten::add"].measured["simulated"].verdict == "native"
    assert (changes["devices"], changes["simulated"]) == (["simulated"], True)
    assert (changes["added"], changes["outdated"]) == (["aten::add"], ["aten::median"])
    assert changes["changed"] == [
        {"operator": "aten::mode", "device": "simulated", "before": "missing", "after": "native"}
    ]
    assert changes["unchanged"] == changes["remeasured"] == []


def test_a_long_sync_is_shown_in_part(
    folder: Path, audited: list[Measurement], capsys: pytest.CaptureFixture[str]
) -> None:
    names = [f"aten::m{number:02}" for number in range(25)]
    audited += [measured(name, "missing") for name in names]
    sync_store(Path("a.sqlite"), quiet=True)
    audited[:] = [measured(name, "native") for name in names]
    sync_store(Path("a.sqlite"), quiet=False)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 22
    assert lines[-1] == "  and 5 more (git diff shows them)"


def test_set_prints_json(folder: Path) -> None:
    assert printed_json("set", "mode", "owner=ada", "issue=") == {
        "version": 1,
        "operator": "aten::mode",
        "file": str(load(folder).place("aten::mode")),
        "changes": {"owner": "ada", "issue": None},
    }
