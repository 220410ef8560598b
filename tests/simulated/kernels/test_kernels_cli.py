"""`mpsmith kernels` in separate processes."""

from __future__ import annotations

from pathlib import Path

from support.json_document import documented

from ..conftest import FreshPython

# The command line's own main prints errors like this; here the group of commands runs alone.
RUN = """
import sys
from mpsmith.cli.kernels import app
from mpsmith.errors import MpsmithError
try:
    app({})
except MpsmithError as error:
    sys.exit(f"error: {{error}}")
"""


def run(fresh_python: FreshPython, *arguments: str, **variables: str | None):  # type: ignore[no-untyped-def]
    return fresh_python(RUN.format(list(arguments)), check=False, **variables)


def test_verify_records_evidence_that_the_import_uses(fresh_python: FreshPython, tmp_path: Path) -> None:
    done = run(fresh_python, "verify", "heaviside", "softshrink", "--json", MPSMITH_REGISTRY=str(tmp_path))
    assert done.returncode == 0, done.stderr
    report = documented("kernels verify", done.stdout)
    assert report["simulated"]
    assert [(f["family"], f["passed"], f["failures"]) for f in report["families"]] == [
        ("heaviside", True, []),
        ("shrink", True, []),
    ]
    text = (tmp_path / "h.yaml").read_text()
    assert "status: implemented" in text
    assert "simulated:" in text
    listed = run(fresh_python, "list", "heaviside", "softshrink", "--json", MPSMITH_REGISTRY=str(tmp_path))
    states = {row["overload"]: row["state"] for row in documented("kernels list", listed.stdout)["kernels"]}
    assert states == {"aten::heaviside.out": "registered", "aten::softshrink.out": "native"}


def test_bench(fresh_python: FreshPython) -> None:
    done = run(fresh_python, "bench", "heaviside", "--elements", "64", "--json")
    assert done.returncode == 0, done.stderr
    report = documented("kernels bench", done.stdout)
    assert report["simulated"]
    (timing,) = report["timings"]
    assert timing["without_is"] == "fallback"
    assert min(timing["kernel"], timing["without"], timing["cpu"]) > 0
    text = run(fresh_python, "bench", "heaviside").stdout
    assert "4096 elements, float32, medians" in text
    assert "say nothing about a GPU" in text


def test_bench_without_workload(fresh_python: FreshPython) -> None:
    done = fresh_python(
        "from mpsmith.kernels.runtime import catalog\n"
        "catalog.part_of = lambda family, part: None\n" + RUN.format(["bench", "heaviside"]),
        check=False,
    )
    assert done.returncode == 1
    assert done.stderr.strip().splitlines()[-1] == (
        "error: nothing to time for heaviside: write its WORKLOAD in kernels/heaviside/cases.py"
    )


def test_verify_suggests_names(fresh_python: FreshPython) -> None:
    done = run(fresh_python, "verify", "heavyside")
    assert done.returncode == 1
    assert "error: mpsmith has no kernel for aten::heavyside (did you mean aten::heaviside" in done.stderr
