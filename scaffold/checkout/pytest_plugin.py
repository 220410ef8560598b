"""The pytest plugin for a checkout's tests: reports the platform as a Mac, and writes a line for each event."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from .scripts import RETURNED_FALSE, SCRIPT, ScriptModule, checked, is_script

EVENTS, FINISHED = "MPSMITH_TRY_EVENTS", "MPSMITH_TRY_FINISHED"
FINDINGS = "MPSMITH_METAL_FINDINGS"  # simulator/objc/metal/encoders.mm reads it
HOST_CODE = "MPSMITH_TRY_HOST_CODE"
"""Environment variables: the file to write to, a file with the tests that earlier processes ran, one with what only
Metal's validation refuses, and the folder with the manifest of the host code that computes."""

_ENDS: dict[str, dict[str, Any]] = {}


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests() -> None:
    """Load torch with the simulated device and report the platform as a Mac, before the project is imported."""
    import torch.utils.cpp_extension  # noqa: F401  (it asks for the platform)

    from ...audit.running.worker_limits import end_with_parent
    from ..building.kernel_builder import LOCAL_KERNEL, offer_local_kernel
    from ..building.mac_answers import MACOS_OF_HOST_CODE, answer_as_a_mac

    threading.Thread(target=end_with_parent, args=(os.getppid(),), daemon=True).start()
    if folder := os.environ.get(HOST_CODE):
        from ...audit.releases.surface.profiles import coverage_profile
        from ...audit.running.host_code import load_host_code
        from ...simulator.opening import device_of_this_process

        load_host_code(folder, MACOS_OF_HOST_CODE, device_of_this_process(coverage_profile))
    answer_as_a_mac(Path.cwd())
    if kernel := os.environ.get(LOCAL_KERNEL):
        offer_local_kernel(kernel)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Remove the tests that earlier processes ran; make tests fail that return False."""
    finished = set(Path(os.environ[FINISHED]).read_text("utf-8").splitlines())
    items[:] = [item for item in items if item.nodeid not in finished]
    for item in items:
        if type(item) is pytest.Function:
            item.obj = checked(item.obj)
    _write(event="collected", tests=[item.nodeid for item in items])


def pytest_pycollect_makemodule(module_path: Path, parent: pytest.Collector) -> pytest.Module | None:
    """Also run a file as a script if pytest cannot call its tests."""
    if not is_script(module_path):
        return None
    script: ScriptModule = ScriptModule.from_parent(parent, path=module_path)
    script.report = _of_script
    return script


def _of_script(test: str, ended: bool, error: BaseException | None) -> None:
    if ended:
        how = {"outcome": "failed", **_of_exception(error)} if error else {"outcome": "passed"}
        _write(event="end", test=test, **how)
    _write(event="start", test=f"{test.partition('::')[0]}::{SCRIPT}" if ended else test)


def pytest_collectreport(report: pytest.CollectReport) -> None:
    """Record a file that cannot be imported, or that skips itself."""
    if report.failed and getattr(report, "seen", None) is None:
        _write(event="end", test=report.nodeid, outcome="failed", **_of_text(str(report.longrepr)))
    elif report.skipped:
        _write(event="end", test=report.nodeid, outcome="skipped", text=_skip_reason(report.longrepr))


@pytest.hookimpl(hookwrapper=True)
def pytest_make_collect_report(collector: pytest.Collector) -> Generator[None, Any, None]:
    """Record the exception of a file that cannot be imported, with its causes."""
    outcome = yield
    report: Any = outcome.get_result()
    call = getattr(report, "call", None)
    if report.failed and call is not None and call.excinfo is not None:
        error = call.excinfo.value
        cause = error.__cause__ if isinstance(error, pytest.Collector.CollectError) else None
        report.seen = True
        _write(event="end", test=report.nodeid, outcome="failed", **_of_exception(cause or error))


def pytest_runtest_logstart(nodeid: str) -> None:
    """Record that a test begins."""
    _write(event="start", test=nodeid)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Generator[None, Any, None]:
    """Remember how a phase of a test ended, if that decides the test."""
    outcome = yield
    report = outcome.get_result()
    if _ENDS.get(item.nodeid, {"outcome": "passed"})["outcome"] != "passed":
        return  # what failed first decides
    if call.excinfo is not None and call.excinfo.typename == "FixtureLookupError" and is_script(item.path):
        _ENDS[item.nodeid] = {"outcome": "skipped", "text": "pytest cannot pass its arguments; the file's script does"}
    elif report.failed and call.excinfo is not None:
        _ENDS[item.nodeid] = {"outcome": "failed", **_of_exception(call.excinfo.value)}
        printed = [line.strip() for line in report.capstdout.splitlines() if any(map(str.isalnum, line))]
        if printed and str(call.excinfo.value) == RETURNED_FALSE:
            _ENDS[item.nodeid]["text"] += f"; its last line: {printed[-1]}"
    elif report.skipped:
        expected = getattr(report, "wasxfail", None)
        reason = _skip_reason(report.longrepr) if expected is None else f"the project expects that it fails: {expected}"
        _ENDS[item.nodeid] = {"outcome": "skipped", "text": reason}
    elif report.failed or report.when == "call":
        _ENDS[item.nodeid] = {"outcome": report.outcome, "text": str(report.longrepr or "")}


@pytest.hookimpl(tryfirst=True)
def pytest_report_teststatus(report: pytest.TestReport) -> tuple[str, str, str]:
    """Print no letter for a test, so that lines of the log hold only what tests print."""
    return report.outcome, "", ""


def pytest_runtest_logfinish(nodeid: str) -> None:
    """Record how a test ended, with its setup, teardown and subtests, and the errors of Metal's validation."""
    findings = Path(os.environ[FINDINGS])
    if findings.is_file():
        for text in dict.fromkeys(findings.read_text("utf-8").splitlines()):
            _write(event="end", test=nodeid, outcome="invalid", text=text)
        findings.unlink()
    if nodeid in _ENDS:
        _write(event="end", test=nodeid, **_ENDS.pop(nodeid))


def _of_exception(error: BaseException) -> dict[str, Any]:
    """The text and classes of an exception, or those of its first cause that mpsmith raised."""
    chain, seen = [], error
    while seen not in chain:
        chain.append(seen)
        seen = seen.__cause__ or seen.__context__ or seen
    ours = [cause for cause in chain if any(kind.__module__.startswith("mpsmith.") for kind in type(cause).__mro__)]
    shown = ours[0] if ours else error
    kinds = [kind.__name__ for kind in type(shown).__mro__]
    diagnostics = [
        vars(diagnostic) for diagnostic in getattr(shown, "diagnostics", ()) if diagnostic.severity == "error"
    ]
    return {"text": str(shown) or type(shown).__name__, "kinds": kinds, "ours": bool(ours), "diagnostics": diagnostics}


def _of_text(text: str) -> dict[str, Any]:
    lines = [line for line in text.splitlines() if line.startswith("E ")] or text.splitlines() or ["cannot be imported"]
    return {"text": lines[-1].removeprefix("E").strip(), "kinds": [], "ours": False, "diagnostics": []}


def _skip_reason(longrepr: Any) -> str:
    return str(longrepr[2] if isinstance(longrepr, tuple) else longrepr).removeprefix("Skipped: ")


def _write(**event: Any) -> None:
    with Path(os.environ[EVENTS]).open("a", encoding="utf-8") as file:
        file.write(json.dumps(event) + "\n")
