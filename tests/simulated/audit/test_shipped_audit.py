"""An audit with the kernels of a release: what they compute is judged, and one that hangs or is broken costs itself."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from mpsmith.audit.model.launches import Launches
from mpsmith.audit.model.verdicts import CaseVerdict, Grade, UlpSensitivity
from mpsmith.audit.store.records import StoredCase
from mpsmith.audit.store.store import Store
from mpsmith.cache import cache_folder
from support.air_kernels import bitcode, buffer, builtin, kernel
from support.metal_libraries import metal_library

# Only a hang of the audit itself ends these tests.
pytestmark = pytest.mark.timeout(1800)

RELEASE = "2.13.0"
POINTERS = """  %i = zext i32 %t to i64
  %from = getelementptr float, ptr addrspace(1) %input, i64 %i
  %to = getelementptr float, ptr addrspace(1) %output, i64 %i
  %v = load float, ptr addrspace(1) %from
"""
NEGATE = f"{POINTERS}  %r = fneg float %v\n  store float %r, ptr addrspace(1) %to"
TWICE = f"{POINTERS}  %r = fadd float %v, %v\n  store float %r, ptr addrspace(1) %to"
TWICE_EXP = f"""{POINTERS}  %e = call float @air.exp.f32(float %v)
  %r = fadd float %e, %e
  store float %r, ptr addrspace(1) %to"""
FOR_EVER = f"""{POINTERS}  br label %again
again:
  store volatile float %v, ptr addrspace(1) %to
  br label %again
end:"""


def unary(name: str, body: str) -> bytes:
    arguments = [buffer("output", "float", 0), buffer("input", "float", 1), builtin("thread_position_in_grid")]
    parameters = "ptr addrspace(1) %output, ptr addrspace(1) %input, i32 %t"
    declared = "declare float @air.exp.f32(float)" if "@air.exp" in body else ""
    return bitcode(kernel(name, parameters, arguments, body, declarations=declared))


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The user's cache, with other kernels in place of the release's."""
    cache = tmp_path_factory.mktemp("cache")
    for entry in cache_folder().iterdir():
        if entry.name != "shipped":
            (cache / entry.name).symlink_to(entry)
    kernels = {
        "neg_dense_scalar_float_float": unary("neg_dense_scalar_float_float", NEGATE),
        "ceil_dense_scalar_float_float": unary("ceil_dense_scalar_float_float", TWICE),
        "exp_dense_scalar_float_float": unary("exp_dense_scalar_float_float", TWICE_EXP),
        "floor_dense_scalar_float_float": unary("floor_dense_scalar_float_float", FOR_EVER),
        "trunc_dense_scalar_float_float": b"no bitcode",
    }
    library = metal_library(kernels)
    folder = cache / "shipped" / RELEASE
    folder.mkdir(parents=True)
    (folder / "metal_basic.metallib").write_bytes(library)
    (folder / "sections.json").write_text(json.dumps({"metal_basic": len(library)}))
    return {**os.environ, "MPSMITH_CACHE": str(cache)}


def mpsmith(environment: dict[str, str], *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "mpsmith", *arguments]
    return subprocess.run(command, capture_output=True, text=True, env=environment, check=False)


@pytest.fixture(scope="module")
def store(environment: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("audit") / "store.sqlite"
    chosen = ("--ops", "neg,ceil,exp,floor,trunc", "--sources", "opinfo,special values", "--dtypes", "float32")
    shipped = ("--shipped", RELEASE, "--timeout", "2", "--workers", "1", "--store", str(path))
    done = mpsmith(environment, "audit", "--device", "simulated", *chosen, *shipped)
    assert done.returncode == 0, done.stderr
    assert f"the kernels that torch {RELEASE} ships to Macs" in done.stderr
    return path


def cases_of(store: Path, operator: str) -> list[StoredCase]:
    with Store.open(store) as opened:
        run = opened.latest_run()
        assert run.environment["shipped"] == run.settings["shipped"] == RELEASE
        return list(opened.cases(run.id, "g.operator = ?", (operator,)))


def launches_of(store: Path, overload: str) -> Launches:
    with Store.open(store) as opened:
        together = Launches()
        for _, name, launches in opened.launches(opened.latest_run().id):
            if name == f"aten::{overload}":
                together.add(launches)
        return together


def test_a_passed_case_has_the_grade_shipped_kernel(store: Path) -> None:
    cases = cases_of(store, "neg")
    assert {case.outcome.verdict for case in cases} == {CaseVerdict.PASSED}
    shipped = [case for case in cases if case.grade is Grade.SHIPPED_KERNEL]
    launches = launches_of(store, "neg")
    assert len(shipped) == launches.cases > 0
    assert set(launches.kernels) == {"neg_dense_scalar_float_float"}
    assert len(shipped) < len(cases)  # a strided one is left to the CPU, and of a kind a few are taken


def test_a_wrong_case_names_the_shipped_kernel(store: Path) -> None:
    wrong = [case for case in cases_of(store, "ceil") if case.outcome.verdict is CaseVerdict.WRONG]
    assert wrong
    assert {case.kernels for case in wrong} == {("ceil_dense_scalar_float_float",)}
    assert Grade.SHIPPED_KERNEL in {case.grade for case in wrong}


@pytest.mark.parametrize(
    ("operator", "ulp_sensitivity"), [("ceil", UlpSensitivity.EXACT), ("exp", UlpSensitivity.INSENSITIVE)]
)
def test_a_wrong_result_says_whether_it_is_ulp_sensitive(
    store: Path, operator: str, ulp_sensitivity: UlpSensitivity
) -> None:
    shipped = [case for case in cases_of(store, operator) if case.grade is Grade.SHIPPED_KERNEL]
    wrong = [case for case in shipped if case.outcome.verdict is CaseVerdict.WRONG]
    assert {case.ulp_sensitivity for case in wrong} <= {ulp_sensitivity, None}
    assert wrong[0].ulp_sensitivity is ulp_sensitivity


def test_a_kernel_that_never_ends_is_replaced_by_the_stand_in(store: Path) -> None:
    """The host may be too slow for it: that says nothing about a Mac."""
    assert {(case.outcome.verdict, case.grade) for case in cases_of(store, "floor")} == {
        (CaseVerdict.PASSED, Grade.DISPATCH_ONLY)
    }
    assert "the kernel floor_dense_scalar_float_float ended a worker process of this audit" in (
        launches_of(store, "floor").stood_in
    )


def test_a_kernel_that_cannot_be_compiled_is_replaced_by_the_stand_in(store: Path) -> None:
    assert {(case.outcome.verdict, case.grade) for case in cases_of(store, "trunc")} == {
        (CaseVerdict.PASSED, Grade.DISPATCH_ONLY)
    }
    assert any("trunc_dense_scalar_float_float" in reason for reason in launches_of(store, "trunc").stood_in)


def test_a_replay_launches_the_kernel_again_and_names_it(environment: dict[str, str], store: Path) -> None:
    wrong = next(case for case in cases_of(store, "ceil") if case.outcome.verdict is CaseVerdict.WRONG)
    done = mpsmith(environment, "replay", wrong.label, "--store", str(store))
    assert "recorded: wrong (shipped kernel) " in done.stdout, done.stderr
    assert "now:      wrong" in done.stdout
    reported = [line for line in done.stdout.splitlines() if line.startswith(("shipped:", "stand-in:"))]
    assert reported == ["shipped:  aten::ceil: ceil_dense_scalar_float_float"]
