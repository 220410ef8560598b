"""`python tests/mutation`: how many small changes of the modules that decide do the tests notice?

It needs the extra `bench`. Without arguments: all folders, 120 mutants a module, seed 0. A survivor is a change that no
test noticed. Those that change no behaviour stand in equivalent.yaml with their reason, and are counted apart.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import yaml
from changes import Mutant, mutants_of, sampled
from folders import FOLDERS
from tabulate import tabulate

HERE = Path(__file__).resolve().parent


@dataclass(frozen=True)
class Result:
    """What became of one mutant: the test that noticed it, or "" and the reason why none can, or "" and ""."""

    path: str
    line: int
    operator: str
    change: str
    killer: str
    equivalent: str


def main() -> int:
    """Run, print the table and the survivors."""
    arguments = _arguments()
    equivalent = _equivalent()
    results: list[Result] = []
    totals: dict[str, int] = {}
    for folder, modules in _selected(arguments).items():
        for path, tests in modules.items():
            mutants = mutants_of((arguments.root / path).read_text())
            totals[path] = len(mutants)
            if arguments.line:
                mutants = [mutant for mutant in mutants if mutant.line in arguments.line]
            mutants = sampled(mutants, arguments.sample, f"{arguments.seed}:{path}")
            for result in _module(arguments.root, path, tests, mutants, equivalent):
                results.append(result)
                if arguments.verbose or not (result.killer or result.equivalent):
                    print(f"{result.path}:{result.line}: {result.change}  [{result.killer or 'SURVIVED'}]", flush=True)
            if arguments.json:  # after each module: a run that is stopped keeps these
                arguments.json.write_text(json.dumps([asdict(result) for result in results], indent=1) + "\n")
        print(f"{folder}: {len(modules)} modules done", file=sys.stderr)
    print(_table(results, totals))
    return 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python tests/mutation", description=__doc__)
    parser.add_argument("--folder", action="append", choices=sorted(FOLDERS), help="only these folders")
    parser.add_argument("--module", action="append", default=[], metavar="PATH", help="only these modules")
    parser.add_argument("--tests", action="append", metavar="PATH", help="these tests, not those of folders.py")
    parser.add_argument("--line", action="append", type=int, help="only mutants of these lines")
    parser.add_argument("--sample", type=int, default=120, help="mutants a module at most (120)")
    parser.add_argument("--seed", default="0", help="which of them (0)")
    parser.add_argument("--root", type=Path, default=HERE.parents[1], help="another checkout of mpsmith")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all results, with who killed each")
    parser.add_argument("--verbose", action="store_true", help="print the killed ones too")
    arguments = parser.parse_args()
    arguments.root = arguments.root.resolve()
    return arguments


def _selected(arguments: argparse.Namespace) -> dict[str, dict[str, list[str]]]:
    folders = {folder: FOLDERS[folder] for folder in arguments.folder or FOLDERS}
    if arguments.module:
        folders = {
            folder: {path: tests for path, tests in modules.items() if path in arguments.module}
            for folder, modules in folders.items()
        }
        if arguments.tests:
            folders = {"given": dict.fromkeys(arguments.module, arguments.tests)}
    return {folder: modules for folder, modules in folders.items() if modules}


def _equivalent() -> dict[tuple[str, str], str]:
    """The reason by path and change."""
    entries = yaml.safe_load((HERE / "equivalent.yaml").read_text()) or []
    return {(entry["path"], change): entry["reason"] for entry in entries for change in entry["changes"]}


def _module(
    root: Path, path: str, tests: list[str], mutants: list[Mutant], equivalent: dict[tuple[str, str], str]
) -> Iterator[Result]:
    """The results for one module: the tests on the simulated device see what the others let through."""
    killers = dict.fromkeys(range(len(mutants)), "")
    for simulated in (False, True):
        of_kind = [test for test in tests if test.startswith("tests/simulated") is simulated]
        left = [number for number, killer in killers.items() if not killer]
        if of_kind and left:
            killed_by = _trial(root, path, of_kind, [mutants[number] for number in left], simulated)
            killers.update(zip(left, killed_by, strict=True))
    for number, mutant in enumerate(mutants):
        reason = "" if killers[number] else equivalent.get((path, mutant.change), "")
        yield Result(path, mutant.line, mutant.operator, mutant.change, killers[number], reason)


def _trial(root: Path, path: str, tests: list[str], mutants: list[Mutant], simulated: bool) -> Iterator[str]:
    job = {
        "root": str(root),
        "path": path,
        "tests": tests,
        "simulated": simulated,
        "mutants": [(mutant.line, mutant.source) for mutant in mutants],
    }
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    linked = root / "build" / "pkg"
    if linked.exists():  # a checkout whose package is not the installed one
        environment["PYTHONPATH"] = str(linked)
    command = [sys.executable, str(HERE / "trial.py")]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment, cwd=root
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(json.dumps(job) + "\n")
        process.stdin.close()
        first = _message(process.stdout.readline(), path)
        print(f"{path}: {len(mutants)} mutants, {first['tests']} tests", file=sys.stderr)
        for _ in mutants:
            yield _message(process.stdout.readline(), path)["killer"]


def _message(line: str, path: str) -> dict[str, Any]:
    message = json.loads(line) if line else {"error": "the trial's process died"}
    if "error" in message:
        raise SystemExit(f"{path}: {message['error']}")
    return message


def _table(results: list[Result], totals: dict[str, int]) -> str:
    rows = []
    for path in dict.fromkeys(result.path for result in results):
        rows.append([path, totals[path], *_counts([result for result in results if result.path == path])])
    rows.append(["all", sum(totals[row[0]] for row in rows), *_counts(results)])
    headers = ["module", "mutants", "tried", "killed", "equivalent", "survived", "score"]
    return tabulate(rows, headers, tablefmt="github")


def _counts(results: list[Result]) -> list[Any]:
    kinds = Counter("killed" if r.killer else "equivalent" if r.equivalent else "survived" for r in results)
    counted = kinds["killed"] + kinds["survived"]
    score = f"{100 * kinds['killed'] / counted:.1f} %" if counted else "–"
    return [len(results), kinds["killed"], kinds["equivalent"], kinds["survived"], score]


if __name__ == "__main__":
    sys.exit(main())
