"""Cases per second: the audit against pytest over the same samples, and against a bare loop in one process.

Every way runs the same operators with the same comparison. Start-up (importing torch, planning) is measured with
one small operator and taken off, because it does not grow with the number of cases.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from tabulate import tabulate

HERE = Path(__file__).parent
ONE_OPERATOR = ["signbit"]

# Each child process prints one line of JSON as its last.
LIST_OPERATORS = """
import json
from mpsmith.audit.sources.opinfo import OpInfoSource
names = sorted({g.operator for g in OpInfoSource().groups() if not g.variant})
print(json.dumps(names))
"""
BARE_LOOP = """
import json, os, torch
from benchmarks import _pytest_baseline as baseline
cases = baseline.samples()
for label, case in cases:
    baseline.judge(case, baseline.DEVICE.recorder, 0, label)
print(json.dumps({"cases": len(cases)}))
"""
AUDIT = """
import json, os, resource, sys
from pathlib import Path
from mpsmith.audit.running.runner import run_audit
from mpsmith.audit.running.selection import Settings
from mpsmith.audit.findings.store import Store
from mpsmith.audit.findings.tally import tally
if __name__ == "__main__":
    path = Path(sys.argv[1])
    settings = Settings(ops=tuple(os.environ["BENCHMARK_OPS"].split(",")), workers=int(sys.argv[2]))
    result = run_audit(settings, path, resume=False, say=lambda text: None)
    with Store.open(path) as store:
        counts = tally(store, result.run).by_mode["fallback"]
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1 << (10 if sys.platform == "linux" else 20))
    print(json.dumps({"cases": sum(counts.values()), "parent_mb": peak}))
"""


@dataclass(frozen=True)
class Measured:
    seconds: float
    answer: dict


def main() -> None:
    operators = json.loads(_python(LIST_OPERATORS, []).stdout.splitlines()[-1])[::12]
    ways = {
        "pytest, one process": _pytest,
        "bare loop, one process": lambda ops: _script(BARE_LOOP, ops),
        "audit, 1 worker": lambda ops: _audit(ops, 1),
        "audit, 2 workers": lambda ops: _audit(ops, 2),
    }
    rates, memory = {}, {}
    for name, way in ways.items():
        startup, whole = way(ONE_OPERATOR), way(operators)
        cases = whole.answer["cases"] - startup.answer["cases"]
        rates[name] = cases / (whole.seconds - startup.seconds)
        memory[name] = whole.answer.get("parent_mb")
    base = rates["pytest, one process"]
    rows = [(name, f"{rate:,.0f}", f"{rate / base:.1f}", memory[name]) for name, rate in rates.items()]
    print(tabulate(rows, headers=("way", "cases/s", "against pytest", "parent, MB"), floatfmt=".0f"))
    lost = 1 - rates["audit, 1 worker"] / rates["bare loop, one process"]
    print(f"isolation costs {lost:.1%} of the throughput of the same cases in process")


def _pytest(operators: list[str]) -> Measured:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(HERE / "_pytest_baseline.py")]
    start = time.perf_counter()
    result = subprocess.run(command, env=_environment(operators), capture_output=True, text=True, check=False)
    seconds = time.perf_counter() - start
    passed = next(line for line in reversed(result.stdout.splitlines()) if " passed" in line)
    return Measured(seconds, {"cases": int(passed.split(" passed")[0].split()[-1])})


def _audit(operators: list[str], workers: int) -> Measured:
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder) / "audit.py"
        script.write_text(AUDIT)
        return _timed([sys.executable, str(script), str(Path(folder) / "store.sqlite"), str(workers)], operators)


def _script(code: str, operators: list[str]) -> Measured:
    return _timed([sys.executable, "-c", code], operators)


def _timed(command: list[str], operators: list[str]) -> Measured:
    start = time.perf_counter()
    result = subprocess.run(command, env=_environment(operators), capture_output=True, text=True, check=False)
    seconds = time.perf_counter() - start
    if result.returncode:
        raise SystemExit(result.stderr)
    return Measured(seconds, json.loads(result.stdout.splitlines()[-1]))


def _python(code: str, operators: list[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code], env=_environment(operators), capture_output=True, text=True, check=True
    )


def _environment(operators: list[str]) -> dict[str, str]:
    return {
        **os.environ,
        "BENCHMARK_OPS": ",".join(operators),
        "PYTORCH_ENABLE_MPS_FALLBACK": "1",
        "PYTHONPATH": str(HERE.parent),
    }


if __name__ == "__main__":
    main()
