"""Cases per second: the audit against pytest over the same OpInfo samples, and against its own loop without isolation.

Every way runs all samples, those that repeat others included, with the same comparison. Start-up (importing torch,
planning) is measured with one small operator and taken off, because it does not grow with the number of cases. Left
out and counted are operators that need several milliseconds a sample, where every way waits for the operator, and
those in which anything falls back, whose samples an audit runs again in strict mode.
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
# Every so many-th operator that has OpInfo samples.
STRIDE = 5
SLOW_SAMPLE = 0.004  # seconds on average

# Each child process prints one line of JSON as its last.
OPERATORS = """
import json, os, time
from benchmarks import _pytest_baseline as baseline
measured = {}
for name in sorted({g.operator for g in baseline.SOURCE.groups() if not g.variant})[:: int(os.environ["STRIDE"])]:
    cases = baseline.samples([name])
    start = time.perf_counter()
    outcomes = [baseline.judge(case, baseline.DEVICE.recorder, 0, label) for label, case in cases]
    seconds = (time.perf_counter() - start) / max(1, len(cases))
    measured[name] = seconds, any(outcome.fallbacks for outcome in outcomes)
print(json.dumps(measured))
"""
PREAMBLE = """
import json, os, resource, sys
from pathlib import Path
from mpsmith.audit.store.store import Store
from mpsmith.audit.findings.run_data import read_run
from mpsmith.audit.findings.tally import tally
from mpsmith.audit.running import worker
from mpsmith.audit.running.worker_tasks import Task, WorkerOptions
from mpsmith.audit.running.worker_setup import start
from mpsmith.audit.running.runner import run_audit
from mpsmith.audit.model.selection import Samples, Settings
path = Path(sys.argv[1])
ops = tuple(os.environ["BENCHMARK_OPS"].split(","))
settings = Settings(ops=ops, sources=("opinfo",), samples=Samples.FULL, workers=int(sys.argv[2]))
def answer(run):
    with Store.open(path) as store:
        cases = sum(sum(counts.values()) for counts in tally(read_run(store, store.run(run))).by_mode.values())
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1 << (10 if sys.platform == "linux" else 20))
    print(json.dumps({"cases": cases, "parent_mb": peak}), file=sys.__stdout__)
"""
AUDIT = """
if __name__ == "__main__":
    answer(run_audit(settings, path, resume=False, say=lambda text: None).id)
"""
# The same functions that a worker process runs, called in this process, into the same kind of store.
IN_PROCESS = """
store = Store.create(path)
stdout = os.dup(1)
start(WorkerOptions(settings, "fallback", path, path.parent, os.getppid()))
plan = worker.plan()
run = store.begin_run(settings.recorded(), plan.environment)
store.plan(run.id, plan.groups)
for group in store.groups(run.id):
    worker.run_group(Task(group.id, group.key, path.parent / "marker"))
os.dup2(stdout, 1)
answer(run.id)
"""


@dataclass(frozen=True)
class Measured:
    seconds: float
    answer: dict


def main() -> None:
    measured = _timed([sys.executable, "-c", OPERATORS], ONE_OPERATOR).answer
    operators = [name for name, (seconds, fell_back) in measured.items() if seconds < SLOW_SAMPLE and not fell_back]
    print(f"{len(operators)} operators; {len(measured) - len(operators)} slow or falling back left out")
    ways = {
        "pytest, one process": _pytest,
        "the audit's loop in one process": lambda ops: _audit(IN_PROCESS, ops, 1),
        "audit, 1 worker": lambda ops: _audit(AUDIT, ops, 1),
        "audit, 2 workers": lambda ops: _audit(AUDIT, ops, 2),
    }
    rates, rows = {}, []
    for name, way in ways.items():
        startup, whole = way(ONE_OPERATOR), way(operators)
        cases = whole.answer["cases"] - startup.answer["cases"]
        rates[name] = cases / (whole.seconds - startup.seconds)
        against = rates[name] / rates["pytest, one process"]
        rows.append((name, f"{cases:,}", f"{rates[name]:,.0f}", f"{against:.1f}", whole.answer.get("parent_mb")))
    print(tabulate(rows, headers=("way", "cases", "cases/s", "against pytest", "peak MB"), floatfmt=".0f"))
    lost = 1 - rates["audit, 1 worker"] / rates["the audit's loop in one process"]
    print(f"isolation costs {lost:.1%} of the throughput of the same cases in process")


def _pytest(operators: list[str]) -> Measured:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(HERE / "_pytest_baseline.py")]
    start = time.perf_counter()
    result = subprocess.run(command, env=_environment(operators), capture_output=True, text=True, check=False)
    seconds = time.perf_counter() - start
    passed = next(line for line in reversed(result.stdout.splitlines()) if " passed" in line)
    return Measured(seconds, {"cases": int(passed.split(" passed")[0].split()[-1])})


def _audit(program: str, operators: list[str], workers: int) -> Measured:
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder) / "audit.py"
        script.write_text(PREAMBLE + program)
        return _timed([sys.executable, str(script), str(Path(folder) / "store.sqlite"), str(workers)], operators)


def _timed(command: list[str], operators: list[str]) -> Measured:
    start = time.perf_counter()
    result = subprocess.run(command, env=_environment(operators), capture_output=True, text=True, check=False)
    seconds = time.perf_counter() - start
    if result.returncode:
        raise SystemExit(result.stderr)
    return Measured(seconds, json.loads(result.stdout.splitlines()[-1]))


def _environment(operators: list[str]) -> dict[str, str]:
    return {
        **os.environ,
        "BENCHMARK_OPS": ",".join(operators),
        "STRIDE": str(STRIDE),
        "PYTORCH_ENABLE_MPS_FALLBACK": "1",
        "PYTHONPATH": str(HERE.parent),
    }


if __name__ == "__main__":
    main()
