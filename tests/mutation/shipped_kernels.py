"""`python tests/mutation/shipped_kernels.py audit.sqlite`: which changes of shipped kernels does an audit find?

Each mutant is a kernel that the audit of the store launched, with one instruction changed. The operators that launch
mutants are audited again with them. A mutant is found if a case that launches it does not pass and no rule explains it.
Mutants have no operator in common, so a finding belongs to one.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tabulate import tabulate

from mpsmith.audit.findings.audited_surface import audited_surface
from mpsmith.audit.findings.explanations import explainer_of
from mpsmith.audit.model.verdicts import CaseVerdict
from mpsmith.audit.releases.wheel.shipped import shipped_library
from mpsmith.audit.store.store import Store
from mpsmith.cache import cache_folder
from mpsmith.errors import MpsmithError
from mpsmith.simulator.air.compiler import default_air_compiler
from mpsmith.simulator.air.container import LibraryFile
from support.air_kernels import bitcode
from support.metal_libraries import metal_library

# An operator that many others call costs as many audits of an entry.
MOST_OPERATORS = 4
# What a mutant changes: an instruction, and what it becomes.
CHANGES: dict[str, tuple[str, str | Callable[[re.Match[str]], str]]] = {
    "another sum": (r"= fadd ", "= fsub "),
    "another difference": (r"= fsub (\w+) (\S+), (\S+)", r"= fsub \1 \3, \2"),
    "another product": (r"= fmul ", "= fadd "),
    "another quotient": (r"= fdiv (\w+) (\S+), (\S+)", r"= fdiv \1 \3, \2"),
    "another maximum": (r"air\.fmax\.", "air.fmin."),
    "another minimum": (r"air\.fmin\.", "air.fmax."),
    "another comparison of numbers": (r"= fcmp (\w*)ogt ", r"= fcmp \1olt "),
    "a comparison without NaN": (r"= fcmp une ", "= fcmp one "),
    "one more iteration": (r"= icmp ult ", "= icmp ule "),
    "the other condition": (r"= icmp slt ", "= icmp sge "),
    "an index off by one": (r"= add (nuw |nsw )*(i\d+) (%\d+), 1\b", r"= add \2 \3, 2"),
    "another shift": (r"= shl ", "= lshr "),
    "another bit operation": (r"= and (i\d+) ", r"= or \1 "),
    "the other branch": (r"= select i1 (\S+), (.+?), (\w+ \S+)$", r"= select i1 \1, \3, \2"),
    "another constant": (r"(= f(?:mul|add) \w+ \S+, )(-?\d\.\d+e[+-]\d+)", lambda m: f"{m[1]}{float(m[2]) * 1.25:e}"),
    "a missing barrier": (r"(?m)^.*call void @air\.wg\.barrier\(.*\n", ""),
    "a sign": (r"= fneg (\w+) (\S+)", r"= fadd \1 \2, 0.000000e+00"),
    "a truncated conversion": (r"= sext (i\d+) ", r"= zext \1 "),
    "another sum of lanes": (r"air\.simd_sum\.f", "air.simd_max.f"),
}
# These change every occurrence: a function's name, and all barriers of a kernel.
EVERYWHERE = frozenset({"another maximum", "another minimum", "a missing barrier", "another sum of lanes"})


@dataclass(frozen=True)
class Mutant:
    """A changed kernel: its change, the operators that launch it, and its module."""

    kernel: str
    change: str
    operators: frozenset[str]
    module: bytes


def main() -> int:
    """Make the mutants, audit with them, print what was found."""
    arguments = _arguments()
    with Store.open(arguments.store) as store:
        run = store.latest_run()
        release = str(run.environment["shipped"])
        launched = _operators_of_kernels(store, run.id)
    library = LibraryFile(shipped_library(release))
    mutants = _chosen(library, launched, arguments.mutants, random.Random(arguments.seed))
    with tempfile.TemporaryDirectory(prefix="mpsmith-mutants-") as folder:
        store_path = _audited(Path(folder), library, mutants, release)
        shown_by = _found(store_path, {mutant.kernel for mutant in mutants})
    rows = [(m.kernel, m.change, ", ".join(sorted(m.operators)), shown_by.get(m.kernel, "SURVIVED")) for m in mutants]
    rows.sort(key=lambda row: row[3] != "SURVIVED")
    print(tabulate(rows, headers=("kernel", "change", "operators", "found by")))
    kinds = {mutant.change for mutant in mutants}
    print(f"\nseed {arguments.seed}: {len(shown_by)} of {len(mutants)} mutants found, of {len(kinds)} kinds")
    return 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("store", type=Path, help="the store of an audit with shipped kernels")
    parser.add_argument("--mutants", type=int, default=40)
    parser.add_argument("--seed", type=int, default=0)
    return parser.parse_args()


def _operators_of_kernels(store: Store, run: int) -> dict[str, set[str]]:
    operators: defaultdict[str, set[str]] = defaultdict(set)
    for group, _, launches in store.launches(run):
        for kernel in launches.kernels:
            operators[kernel].add(group.operator)
    return operators


def _chosen(
    library: LibraryFile, launched: Mapping[str, set[str]], count: int, generator: random.Random
) -> list[Mutant]:
    """Mutants of kernels that few operators launch, none of them in common, all kinds of changes in turn."""
    kernels = sorted(kernel for kernel, operators in launched.items() if len(operators) <= MOST_OPERATORS)
    generator.shuffle(kernels)
    taken: set[str] = set()
    used: Counter[str] = Counter()
    chosen: list[Mutant] = []
    for kernel in kernels:
        if len(chosen) == count:
            break
        if taken & launched[kernel]:
            continue
        text = default_air_compiler().disassemble(library.bitcode(kernel))
        possible = sorted(dict(_changed(text, generator)).items(), key=lambda change: used[change[0]])
        for change, changed in possible:
            try:
                module = bitcode(changed)
            except AssertionError:  # not every type has every instruction
                continue
            chosen.append(Mutant(kernel, change, frozenset(launched[kernel]), module))
            used[change] += 1
            taken |= launched[kernel]
            break
    return chosen


def _changed(text: str, generator: random.Random) -> Iterator[tuple[str, str]]:
    """A kernel's module with each kind of change that it has a place for."""
    for change, (pattern, becomes) in CHANGES.items():
        places = list(re.finditer(pattern, text, flags=re.MULTILINE))
        if places and change in EVERYWHERE:
            yield change, re.sub(pattern, becomes, text)
        elif places:
            place = generator.choice(places)
            replaced = becomes(place) if callable(becomes) else place.expand(becomes)
            yield change, text[: place.start()] + replaced + text[place.end() :]


def _audited(folder: Path, library: LibraryFile, mutants: list[Mutant], release: str) -> Path:
    """Audit the mutants' operators with a cache that has the changed library; return the store."""
    cache, store = folder / "cache", folder / "audit.sqlite"
    changed = {mutant.kernel: mutant.module for mutant in mutants}
    modules = {name: changed.get(name) or library.bitcode(name) for name in library.names}
    content = metal_library(modules)
    shipped = cache / "shipped" / release
    shipped.mkdir(parents=True)
    for entry in cache_folder().iterdir():
        if entry.name != "shipped":
            (cache / entry.name).symlink_to(entry)
    (shipped / "metal_basic.metallib").write_bytes(content)
    sections = (cache_folder() / "shipped" / release / "sections.json").read_text()
    (shipped / "sections.json").write_text(re.sub(r'("metal_basic": )\d+', rf"\g<1>{len(content)}", sections))
    operators = ",".join(sorted({operator for mutant in mutants for operator in mutant.operators}))
    command = [
        sys.executable,
        "-m",
        "mpsmith",
        "audit",
        "--ops",
        operators,
        "--shipped",
        release,
        "--store",
        str(store),
    ]
    done = subprocess.run(command, env={**os.environ, "MPSMITH_CACHE": str(cache)}, check=False)
    if done.returncode:
        raise MpsmithError(f"the audit with {len(mutants)} mutants ended with {done.returncode}")
    return store


def _found(path: Path, kernels: set[str]) -> dict[str, str]:
    """The case that shows each mutant: it launched the kernel, did not pass, and no rule explains it."""
    labels: dict[str, str] = {}
    with Store.open(path) as store:
        run = store.latest_run()
        explainer = explainer_of(run, audited_surface(run))
        for case in store.cases(run.id, "c.verdict != 'passed'"):
            shown = kernels.intersection(case.kernels) - labels.keys()
            if shown and case.outcome.verdict is not CaseVerdict.SKIPPED and explainer.rule_for(case) is None:
                labels |= dict.fromkeys(shown, case.label)
    return labels


if __name__ == "__main__":
    sys.exit(main())
