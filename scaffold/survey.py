"""Scaffolds every gap of a release, or native operators of every kind, and checks what comes out.

    python -m mpsmith.scaffold.survey --torch 2.15.0 --target upstream --out DIR

Of the target `shader`, which has no code for macOS, it is checked that the tests that come with it can be collected and
fail because the kernel is not written.

Each answer is a line of DIR/answers.jsonl as soon as it is there. A run that was stopped goes on where it was: an
operator whose files are as they were, with the same tools, is not checked again.
"""

from __future__ import annotations

import argparse
import json
import runpy
import shutil
import sys
import time
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from ..errors import MpsmithError
from .errors import InexpressibleError
from .generation.generate import prepare
from .generation.writing import write
from .manifest import digest_of
from .operators.source import source_of
from .proof.checking import check_files, files_to_check
from .proof.toolchain import find
from .targets import KernelTarget

# Operators that torch has kernels for on mps, of every kind that a scaffold knows.
NATIVE = (
    *("relu", "gelu_backward", "add", "where", "addcmul", "_softmax", "cumsum", "index_select", "scatter_add"),
    *("avg_pool2d", "grid_sampler_2d", "upsample_bilinear2d", "sort", "topk", "bernoulli_", "normal_", "mm"),
    *("linalg_inv_ex", "_fused_adam_", "_fused_sgd_"),
)
# The suffixes of the files that are checked.
PARTS = {"code": (".mm", ".metal"), "patch": (".patch",), "tests": (".py",)}


@dataclass(frozen=True)
class SurveyRow:
    """What became of one operator.

    Attributes:
        release: the release of torch that it was checked against.
        target: what it was scaffolded as.
        part: what was checked, a key of PARTS.
        operator: the operator whose kernel was scaffolded.
        tools: a hash of the generated files and of the toolchain.
        outcome: `accepted`, `refused`, or `inexpressible` where the target cannot pass an argument; of tests
            `not written`, which is why they should fail, or `no inputs` where no known call reaches the kernel.
        problems: what the checker said, as `file:line:column: error: ...`.
        seconds: how long the check took.
    """

    release: str
    target: str
    part: str
    operator: str
    tools: str
    outcome: str
    problems: tuple[str, ...]
    seconds: float


def survey(
    release: str,
    target: KernelTarget,
    names: Iterable[str],
    folder: Path,
    part: str = "code",
    stored_rows: Iterable[SurveyRow] = (),
) -> Iterator[tuple[SurveyRow, bool]]:
    """An answer for each operator, and whether it was among the known ones.

    `names`: operators with or without `aten::`; those that share a kernel give one answer.
    `folder`: gets a folder for each operator, in place of one that is there.
    `part`: which of the generated files to check, a key of PARTS.
    Raises ToolchainError when the release was not set up.
    """
    source = source_of(release)
    identity = find(release).identity if target is not KernelTarget.SHADER else source.release
    by_key = {(row.release, row.target, row.part, row.operator, row.tools): row for row in stored_rows}
    served = {source.serving(source.operator(name)).name for name in names}
    for name in sorted(served):
        place = folder / release / target.value / source.operator(name).stem
        shutil.rmtree(place, ignore_errors=True)  # what is there would count as written by hand, and stay
        try:
            plan = prepare(source, name, target, out=place, force=True).plan
        except InexpressibleError as error:
            yield SurveyRow(release, target.value, part, name, "", "inexpressible", (str(error),), 0.0), False
            continue
        tools = digest_of("\n".join([identity, *sorted(change.after for change in plan.changes)]))
        if answer := by_key.get((release, target.value, part, name, tools)):
            yield answer, True
            continue
        write(plan, force=True)
        check = _tested if target is KernelTarget.SHADER else _checked
        yield check(release, target, part, name, place, tools), False


def _checked(release: str, target: KernelTarget, part: str, name: str, place: Path, tools: str) -> SurveyRow:
    start = time.perf_counter()
    files = [path for path in files_to_check(place) if path.suffix in PARTS[part]]
    answers = list(check_files(files, release))
    problems = tuple(str(finding) for answer in answers for finding in answer.findings)
    accepted = bool(answers) and all(answer.accepted for answer in answers)
    seconds = round(time.perf_counter() - start, 2)
    return SurveyRow(release, target.value, part, name, tools, "accepted" if accepted else "refused", problems, seconds)


def _tested(release: str, target: KernelTarget, part: str, name: str, place: Path, tools: str) -> SurveyRow:
    """How the tests of a kernel that is not written fail."""
    from .conformance import KernelNotWrittenError, registered

    start = time.perf_counter()
    kernel = next(path for path in (place / "kernels").glob("*/*.py") if path.stem == path.parent.name)
    (tests,) = (place / "tests").glob("test_*.py")
    module = runpy.run_path(str(tests))
    outcome, problems = "refused", ["the tests pass without a kernel"]
    try:
        with registered(kernel) as called:
            module["subject"].check_written()
        if not called:
            outcome, problems = "no inputs", ["none of the known calls reaches the kernel, so nothing was tested"]
    except KernelNotWrittenError:
        outcome, problems = "not written", []
    except Exception as error:
        outcome = "no inputs" if "no inputs" in str(error) else "refused"
        problems = [" ".join(str(error).split())]
    seconds = round(time.perf_counter() - start, 2)
    return SurveyRow(release, target.value, part, name, tools, outcome, tuple(problems), seconds)


def stored(path: Path) -> list[SurveyRow]:
    """The answers of earlier runs; a last line that was cut off is left out."""
    rows = []
    for line in path.read_text("utf-8").splitlines() if path.is_file() else ():
        try:
            data = json.loads(line)
        except ValueError:
            continue
        rows.append(SurveyRow(**data | {"problems": tuple(data["problems"])}))
    return rows


def main(arguments: list[str] | None = None) -> int:
    """The command; its exit code is 1 when something was refused."""
    parser = argparse.ArgumentParser(prog="python -m mpsmith.scaffold.survey", description=__doc__)
    parser.add_argument("--torch", required=True, metavar="RELEASE")
    parser.add_argument("--target", required=True, choices=[target.value for target in KernelTarget])
    parser.add_argument("--out", required=True, type=Path, metavar="DIR")
    parser.add_argument("--reachable", action="store_true", help="only the gaps that a user of mps can reach")
    parser.add_argument("--native", action="store_true", help=f"{len(NATIVE)} native operators in place of the gaps")
    parser.add_argument("--patch", action="store_true", help="check the patches of the target upstream, not its code")
    options = parser.parse_args(arguments)
    options.out.mkdir(parents=True, exist_ok=True)
    path = options.out / "answers.jsonl"
    source = source_of(options.torch)
    gaps = source.gaps() if options.reachable else source.lacking()
    names = NATIVE if options.native else [operator.name for operator in gaps]
    part = "tests" if options.target == KernelTarget.SHADER.value else "patch" if options.patch else "code"
    counts: dict[str, int] = {}
    with path.open("a", encoding="utf-8") as lines:
        for number, (answer, was_known) in enumerate(
            survey(options.torch, KernelTarget(options.target), names, options.out, part, stored(path)), start=1
        ):
            counts[answer.outcome] = counts.get(answer.outcome, 0) + 1
            cost = "known" if was_known else f"{answer.seconds:.1f} s"
            print(f"{number}: aten::{answer.operator}: {answer.outcome} ({cost})", flush=True)
            for problem in answer.problems if answer.outcome not in ("accepted", "not written") else ():
                print(f"   {problem}", flush=True)
            if not was_known:
                print(json.dumps(asdict(answer)), file=lines, flush=True)
    what = f"{'native operators' if options.native else 'gaps'}, {options.target}, {part}"
    print(f"torch {options.torch}, {what}: {', '.join(f'{n} {outcome}' for outcome, n in sorted(counts.items()))}")
    return 1 if counts.get("refused") else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except MpsmithError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(error.exit_code)
