"""Says of each gap whether its scaffold starts right: outputs, shapes, dtypes, what is bound, the launch grid.

    python -m mpsmith.scaffold.review --out DIR [--ops mode,frexp] [--kinds pooling] [--resume] [--markdown FILE]

The generated host code runs as it was written; in the place of its Metal body stands one that computes the operator's
reference on the CPU from nothing but what is bound (`reference_body`). Then the generated tests run, on the simulated
device. A gap is green when all of them pass, without a line written by hand. Nothing of it is said about a Mac, or
about the Metal source.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import re
import shutil
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from ..errors import MpsmithError
from .generation.generate import Scaffold, prepare
from .generation.writing import write
from .launches.launch import Launch, launch_of
from .operators.observing_apart import observations_of, stop_observing
from .operators.source import Source, source_of
from .reference_body import ASPECTS, Findings, FunctorBody, ReferenceBody
from .targets import KernelTarget

KINDS = ("unary", "binary", "ternary", "reduction", "pooling")
_UNWRITTEN = re.compile(r"    raise NotImplementedError\(\n.*?\n    \)\n", re.DOTALL)


@dataclass(frozen=True)
class ReviewRow:
    """What was found of one gap.

    Attributes:
        operator: the operator.
        kind: the kind of its kernel.
        findings: what is wrong by aspect; one that is not there is right.
        launches: how many launches were computed; without one, nothing is known.
        passed, failed: the generated tests.
        first: the first test that failed, and why.
    """

    operator: str
    kind: str
    findings: dict[str, str]
    launches: int
    passed: int
    failed: int
    first: str

    @property
    def green(self) -> bool:
        """Whether every generated test passed, and something was launched."""
        return self.launches > 0 and self.passed > 0 and not self.failed

    def says(self, aspect: str) -> str:
        """What the table says of an aspect."""
        if aspect in self.findings:
            return self.findings[aspect]
        return "right" if self.launches else "not run"


class _Recorder:
    """Counts pytest's reports."""

    def __init__(self) -> None:
        self.passed = 0
        self.failures: list[str] = []

    def pytest_runtest_logreport(self, report: Any) -> None:
        """A test's setup, call or teardown has ended."""
        if report.passed and report.when == "call":
            self.passed += 1
        elif report.failed or report.skipped:
            last = str(report.longrepr).strip().splitlines()
            self.failures.append(f"{report.nodeid.rpartition('::')[2]}: {_reason(last)}")


def _reason(lines: Sequence[str]) -> str:
    errors = [line.removeprefix("E").strip() for line in lines if line.startswith("E ")]
    return (errors or lines or [""])[0][:200]


def review(source: Source, name: str, folder: Path) -> ReviewRow:
    """Scaffold an operator, fill its body, run its tests."""
    import pytest

    operator = source.serving(source.operator(name))
    place = folder / operator.stem
    shutil.rmtree(place, ignore_errors=True)
    scaffold = prepare(source, operator.name, KernelTarget.SHADER, out=place, force=True)
    write(scaffold.plan, force=True)
    module = place / "kernels" / operator.stem / f"{operator.stem}.py"
    text, count = _UNWRITTEN.subn("", module.read_text("utf-8"))
    if not count:
        raise MpsmithError(f"{module} has no line that says that it is not written; the review cannot fill it in")
    module.write_text(text, "utf-8")
    findings, recorder = Findings(), _Recorder()
    words = [str(place / "tests"), "-q", "--no-header", "--tb=short", "-p", "no:cacheprovider", "-c", os.devnull]
    with _filled(_launches(scaffold), findings):
        pytest.main([*words, "--rootdir", str(place), "--import-mode=importlib"], plugins=[recorder])
    first = recorder.failures[0] if recorder.failures else ""
    failed = len(recorder.failures)
    kind = scaffold.choice.kind.value
    return ReviewRow(operator.name, kind, findings.by_aspect, findings.launches, recorder.passed, failed, first)


def _launches(scaffold: Scaffold) -> list[Launch]:
    seen = observations_of(scaffold.operator)
    return [launch_of(one, scaffold.choice.kind, seen.get(one.name)) for one in scaffold.operator.kernels]


@contextmanager
def _filled(launches: Sequence[Launch], findings: Findings) -> Iterator[None]:
    """Inside, the shaders of scaffolds outside the package answer with the reference."""
    from ..kernels.runtime.shader import Shader

    compiled = Shader.kernel
    package = Path(__file__).parents[1]

    def kernel(self: Shader, name: str, device: Any) -> Any:
        if self.path.is_relative_to(package / "kernels"):
            return compiled(self, name, device)
        by_length = sorted(launches, key=lambda one: len(one.id), reverse=True)
        launch = next(one for one in by_length if name.startswith(f"{one.id}_"))
        return (FunctorBody if launch.is_floating_elementwise else ReferenceBody)(launch, findings)

    Shader.kernel = kernel  # type: ignore[method-assign]
    try:
        yield
    finally:
        Shader.kernel = compiled  # type: ignore[method-assign]


def table(rows: Sequence[ReviewRow]) -> str:
    """The rows as Markdown, and how many are green."""
    head = ["operator", "kind", *ASPECTS, "tests", "first failure"]
    lines = [f"| {' | '.join(head)} |", f"|{'---|' * len(head)}"]
    for row in rows:
        tests = f"{row.passed} of {row.passed + row.failed}"
        cells = [f"`{row.operator}`", row.kind, *(row.says(aspect) for aspect in ASPECTS), tests, row.first]
        lines.append(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |")
    measured = [row for row in rows if row.kind in KINDS]
    green = sum(row.green for row in measured)
    share = f", {100 * green // len(measured)} %" if measured else ""
    return "\n".join(
        [*lines, "", f"Green: {green} of {len(measured)} elementwise, reduction and pooling gaps{share}.", ""]
    )


def main(arguments: list[str] | None = None) -> int:
    """The command."""
    parser = argparse.ArgumentParser(prog="python -m mpsmith.scaffold.review", description=__doc__)
    parser.add_argument("--out", required=True, type=Path, metavar="DIR")
    parser.add_argument("--ops", help="only these operators, separated by commas")
    parser.add_argument("--kinds", default=",".join(KINDS), help="only gaps of these kinds, or `all`")
    parser.add_argument("--resume", action="store_true", help="keep the rows of an earlier run, DIR/rows.jsonl")
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="where the table goes; else it is printed")
    options = parser.parse_args(arguments)
    options.out.mkdir(parents=True, exist_ok=True)
    source = source_of(None)
    names = options.ops.split(",") if options.ops else [gap.name for gap in source.gaps()]
    served = sorted({source.serving(source.operator(name)).name for name in names})
    if not options.ops and options.kinds != "all":
        served = [name for name in served if _kind(source, name) in options.kinds.split(",")]
    known = stored(options.out / "rows.jsonl") if options.resume else {}
    with (options.out / "rows.jsonl").open("a" if options.resume else "w", encoding="utf-8") as lines:
        for row in review_all(source, [name for name in served if name not in known], options.out):
            known[row.operator] = row
            print(json.dumps(asdict(row)), file=lines, flush=True)
            said = "green" if row.green else row.first or row.findings
            print(f"aten::{row.operator}: {said}", file=sys.stderr, flush=True)
    rows = [known[name] for name in served]
    if options.markdown:
        options.markdown.write_text(table(rows), "utf-8")
    else:
        print(table(rows))
    return 0


def stored(path: Path) -> dict[str, ReviewRow]:
    """The rows that an earlier run wrote, by their operators; the last one of each."""
    rows = map(json.loads, path.read_text("utf-8").splitlines() if path.is_file() else ())
    return {row["operator"]: ReviewRow(**row) for row in rows}


def review_all(source: Source, names: Sequence[str], folder: Path) -> Iterator[ReviewRow]:
    """A row for each operator, each in a process of its own: some calls of operators without a kernel end theirs.

    The processes are copies of this one, which has listed the inputs of all operators, and observed them.
    """
    from .conformance import list_inputs

    for name in names:
        observations_of(source.operator(name))
    stop_observing()
    list_inputs()
    fork = multiprocessing.get_context("fork")
    for name in names:
        told, tells = fork.Pipe(duplex=False)
        copy = fork.Process(target=_tell, args=(source, name, folder, tells))
        copy.start()
        tells.close()
        try:
            output = told.recv()
        except EOFError:
            output = ""
        copy.join()
        yield row_of(name, _kind(source, name), copy.exitcode or 0, output)


def _tell(source: Source, name: str, folder: Path, tells: Connection) -> None:
    """The process of one operator: what pytest and the device print goes nowhere."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.dup2(nowhere, sys.stderr.fileno())
    tells.send(json.dumps(asdict(review(source, name, folder))))


def row_of(name: str, kind: str, status: int, output: str) -> ReviewRow:
    """What the process of one operator told, or that it ended before it told anything."""
    if status == 0 and output:
        return ReviewRow(**json.loads(output))
    how = signal.Signals(-status).name if status < 0 else f"status {status}"
    return ReviewRow(name, kind, {}, 0, 0, 1, f"the process ended with {how}")


def _kind(source: Source, name: str) -> str:
    from .operators.kinds import kind_of
    from .operators.opinfos import opinfos_for

    return kind_of(source.operator(name), opinfos_for(name).kind).kind.value


if __name__ == "__main__":
    try:
        sys.exit(main())
    except MpsmithError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(error.exit_code)
