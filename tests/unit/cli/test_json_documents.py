"""Every `--json` is an object with a version and the keys that docs/json.md names."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from typer.main import get_command

from mpsmith.audit.model.selection import Settings
from mpsmith.audit.running import host_code
from mpsmith.audit.store.store import Store
from mpsmith.cli import app, audit
from mpsmith.cli.audit_options import AuditRequest
from mpsmith.scaffold.building import simulated
from mpsmith.simulator.clang.diagnostics import Diagnostic
from mpsmith.simulator.objc.compiler import ExtensionBuildError
from mpsmith.simulator.upstream.manifest import BuiltFile, TreeBuild
from support.commands import typed
from support.json_document import KEYS, documented
from support.needs import needs_a_device, needs_simulated_device
from support.stores import begun

# What answers at once.
QUICK = [
    "next",
    "coverage --history",
    "coverage --operators",
    "registry show aten::mode",
    "registry show",
    "registry check",
    "scaffold frexp --force --dry-run",
    "kernels list",
    "evidence show",
    "doctor",
    "why mode",
    "coverage",
    "coverage --ops add --missing",
    "scaffold heaviside --from-kernel --target upstream --dry-run",
]
# Groups whose tests leave out the first word, and compare their JSON in `printed_json`.
_OF_GROUPS = {"evidence add", "evidence collect", "registry set"}
_TESTS = Path(__file__).parents[2]


def with_json(command: Any, path: str = "") -> Iterator[str]:
    for name, inner in getattr(command, "commands", {}).items():
        yield from with_json(inner, f"{path} {name}".strip())
    if any("--json" in parameter.opts for parameter in command.params):
        yield path


def test_every_command_that_prints_json_is_described() -> None:
    words = {word for command in KEYS for word in (command, command.split()[0])}
    assert [name for name in with_json(get_command(app)) if name not in words and name.split()[0] not in words] == []


@pytest.mark.parametrize("words", QUICK)
def test_printed_json_has_a_version_and_the_documented_keys(words: str) -> None:
    arguments = [*words.split(), "--json"]
    if "kernel" in words:  # it loads the device, which an earlier backward of this process would prevent
        needs_a_device()
        command = [sys.executable, "-m", "mpsmith", *arguments]
        printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    else:
        printed = typed(app, *arguments).stdout
    documented(words, printed)


def test_each_document_is_compared_with_its_command() -> None:
    sources = "".join(path.read_text("utf-8") for path in _TESTS.rglob("test_*.py"))
    compared = {name for name in KEYS if f'documented("{name}"' in sources or any(q.startswith(name) for q in QUICK)}
    compared |= {" ".join(words) for words in re.findall(r'printed_json\(app, "(\w+)", "(\w+)"', sources)}
    compared |= set(re.findall(r'printed_json\(app, "(\w+)"', sources)) | _OF_GROUPS
    assert KEYS.keys() - compared == {"audit --compile", "report --unexplained"}  # as the other command of their rows


@pytest.mark.parametrize("line", ["", "no"])
def test_build_prints_json_also_after_an_error(line: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def built(_: object) -> list[Any]:
        if line:
            raise ExtensionBuildError("no", [Diagnostic("a.mm", 1, 1, "error", line, "")])
        return [SimpleNamespace(library=tmp_path / "a.so", warnings=[])]

    needs_simulated_device()
    monkeypatch.setattr(simulated, "build", built)
    (tmp_path / "a.mm").touch()
    done = typed(app, "build", str(tmp_path / "a.mm"), "--json")
    assert len(documented("build", done.stdout)["modules"]) == 1 - done.exit_code
    assert done.exit_code == bool(line)


def test_upstream_build_prints_json(monkeypatch: pytest.MonkeyPatch) -> None:
    files = (BuiltFile("Eye", ("eye.out",), "eye.so"), BuiltFile("Sort", (), problem="no"))
    monkeypatch.setattr(host_code, "build_host_code", lambda *_: ((), TreeBuild("2.6.0", "2.6.0", files)))
    done = typed(app, "upstream", "build", "--torch", "2.6.0", "--json")
    assert [row["problem"] for row in documented("upstream build", done.stdout)["files"]] == ["", "no"]
    assert done.exit_code == 1


def test_audits_of_several_releases_are_json(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    needs_simulated_device()
    with Store.create(tmp_path / "store.sqlite") as store:
        runs = [begun(store, {}, {"shipped": release}).finish() for release in ("2.13.0", "2.14.1")]
    left = iter(runs)
    monkeypatch.setattr(audit, "_audit", lambda *_: (next(left), {}))
    request = AuditRequest(Settings(), tmp_path / "store.sqlite", "2.13.0,2.14.1", as_json=True)
    monkeypatch.setattr(audit, "_subjects", lambda asked: [asked.settings] * 2)
    audit.run_request(request)
    assert documented("audit --shipped", capsys.readouterr().out)["wrong_results"] == []
    done = typed(app, "compare", str(store.path), str(store.path), "--shipped", "--json")
    assert documented("compare --shipped", done.stdout)["wrong_results"] == []
