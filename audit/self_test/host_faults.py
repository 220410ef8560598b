"""Plants faults into PyTorch's mps host code of 2.6.0, and counts those that an audit finds.

Each fault of host_faults.yaml changes one file in a copy of the sources; only that file is compiled again, and the
operators that it affects are audited with and without the fault. It is found if a case fails only with it.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
import tempfile
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated

import yaml
from pydantic import BaseModel, ConfigDict, Field

from ...errors import MpsmithError
from ...simulator.opening import DeviceKind
from ...simulator.upstream.kept_builds import kept_build
from ...simulator.upstream.sources import source_of_release
from ..model.operator_names import matching
from ..model.selection import MacOS, Samples, Settings
from ..model.verdicts import CaseVerdict
from ..running.host_code import build_host_code
from ..store.store import Store

RELEASE = "2.6.0"
# A third of the sources: what they find, a whole audit finds too.
_SOURCES = "opinfo,arguments,argument pairs,pairs,layouts,tensor layouts,targets,schema targets,kernel sizes"
_FAULTS = Path(__file__).with_name("host_faults.yaml")
_BACKEND = "aten/src/ATen/native/mps"
_FAILURES = (CaseVerdict.CRASH, CaseVerdict.TIMEOUT, CaseVerdict.WRONG, CaseVerdict.DTYPE_GAP, CaseVerdict.MISSING)


class HostFault(BaseModel):
    """A fault of host_faults.yaml.

    Attributes:
        kind: what is forgotten or wrong.
        file: the file, below native/mps and without suffix.
        operators: the operators that show it.
        was, becomes: the text to replace, which the file must contain once (spaces aside), and its replacement.
        macos, dtype: the version of macOS and the dtype that show it.
        alone: whether other operators show it, too, so that no other fault is planted with it.
        whole: whether only an audit with the default samples of every source shows it.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    kind: str
    file: str
    operators: Annotated[tuple[str, ...], Field(min_length=1)]
    was: Annotated[str, Field(min_length=1)]
    becomes: str
    macos: MacOS = MacOS.TAHOE
    dtype: str = "float32"
    alone: bool = False
    whole: bool = False

    @property
    def conditions(self) -> tuple[MacOS, str, bool]:
        """The settings that an audit with the fault shares with the one without."""
        return self.macos, self.dtype, self.whole

    def changed(self, text: str) -> str:
        """The text of the file with the fault. Raises MpsmithError unless the file contains `was` once."""
        pattern = r"\s+".join(map(re.escape, self.was.split()))
        changed, count = re.subn(pattern, lambda match: self.becomes, text)
        if count != 1:
            raise MpsmithError(f"{self.file}.mm has {count} times, and not once: {self.was}")
        return changed


@dataclass(frozen=True)
class FaultResult:
    """The result of auditing a fault: the cases that fail only with it, how many ran, and one of their messages."""

    fault: HostFault
    failing: int
    executed: int
    message: str


def host_faults() -> list[HostFault]:
    """All faults. Raises ValidationError if the file has a wrong format."""
    return [HostFault.model_validate(row) for row in yaml.safe_load(_FAULTS.read_text("utf-8"))]


def rounds_of(faults: Iterable[HostFault]) -> list[list[HostFault]]:
    """Group faults that can be planted together: in different files and operators, and under the same conditions."""
    rounds: list[list[HostFault]] = []
    for fault in faults:
        fitting = (r for r in rounds if not fault.alone and all(_fit_one_build(fault, other) for other in r))
        chosen = next(fitting, None)
        if chosen is None:
            rounds.append(chosen := [])
        chosen.append(fault)
    return rounds


def _fit_one_build(fault: HostFault, other: HostFault) -> bool:
    return (
        not other.alone
        and fault.conditions == other.conditions
        and fault.file != other.file
        and set(fault.operators).isdisjoint(other.operators)
    )


def audit_faults(faults: Sequence[HostFault], workers: int, say: Callable[[str], None]) -> Iterator[FaultResult]:
    """Audit with each fault, and without faults for comparison.

    Args:
        faults: the faults to plant.
        workers: the number of processes that execute cases.
        say: receives lines of progress.

    Raises:
        MpsmithError: a text is not in the sources, or nothing can be built or audited here.
    """
    kernels = build_host_code(RELEASE, say)[1].kernels
    root = source_of_release(RELEASE)
    with tempfile.TemporaryDirectory(prefix="mpsmith-") as temporary:
        folder = Path(temporary)
        clean: dict[tuple[MacOS, str, bool], Mapping[str, CaseResult]] = {}
        for number, conditions in enumerate(dict.fromkeys(fault.conditions for fault in faults)):
            compared = [fault for fault in faults if fault.conditions == conditions]
            clean[conditions] = _results(root, kernels, compared, folder / f"clean-{number}.sqlite", workers)
        for number, together in enumerate(rounds_of(faults)):
            tree = folder / f"tree-{number}"
            _plant(together, root, tree)
            say(f"round {number + 1}: {', '.join(fault.file for fault in together)}")
            results = _results(tree, kernels, together, folder / f"{number}.sqlite", workers)
            yield from (fault_result(fault, results, clean[fault.conditions]) for fault in together)


def _plant(faults: Iterable[HostFault], root: Path, tree: Path) -> None:
    shutil.copytree(root, tree)
    for fault in faults:
        path = tree / _BACKEND / f"{fault.file}.mm"
        path.write_text(fault.changed(path.read_text("utf-8")), encoding="utf-8")


@dataclass(frozen=True)
class CaseResult:
    """The result of a case."""

    operator: str
    verdict: CaseVerdict
    message: str


def _results(
    root: Path, kernels: str, faults: Sequence[HostFault], path: Path, workers: int
) -> Mapping[str, CaseResult]:
    """The result of each case of the operators of these faults, by label."""
    from ..releases.surface.native_functions import installed_release
    from ..running.runner import run_audit

    built, tree = kept_build(root, str(root), kernels, installed_release(), lambda line: None)
    if tree.failed:
        raise MpsmithError(f"{tree.failed[0].name} does not compile: {tree.failed[0].problem}")
    whole = faults[0].whole
    settings = Settings(
        samples=Samples.DEFAULT if whole else Samples.QUICK,
        ops=tuple(sorted({operator for fault in faults for operator in fault.operators})),
        dtypes=(faults[0].dtype,),
        sources=() if whole else tuple(_SOURCES.split(",")),
        device=DeviceKind.SIMULATED,
        workers=workers,
        host_code=str(built),
        macos=faults[0].macos,
    )
    run = run_audit(settings, path, resume=False, say=lambda text: None)
    with Store.open(path) as store:
        cases = store.cases(run.id)
        return {case.label: CaseResult(case.group.operator, case.outcome.verdict, case.fault_message) for case in cases}


def fault_result(fault: HostFault, results: Mapping[str, CaseResult], clean: Mapping[str, CaseResult]) -> FaultResult:
    """Compare the results with a fault and those without it."""
    names = {result.operator for result in results.values()}
    its_own = {name for operator in fault.operators for name in matching(operator, names)}
    executed = {
        label: result for label, result in results.items() if result.operator in its_own and result.verdict.executed
    }
    new = [
        result
        for label, result in executed.items()
        if result.verdict in _FAILURES and label in clean and clean[label].verdict not in _FAILURES
    ]
    return FaultResult(fault, len(new), len(executed), new[0].message if new else "")


def table(results: Collection[FaultResult]) -> str:
    """The kinds with the numbers planted and found, and each fault with the cases that show it."""
    lines = ["| kind | file | operators | macOS | cases that fail | of |", "|---|---|---|--:|--:|--:|"]
    for result in results:
        fault = result.fault
        cells = (fault.kind, fault.file, ", ".join(fault.operators), fault.macos.value, result.failing, result.executed)
        lines.append(f"| {' | '.join(map(str, cells))} |")
    shown = sum(result.failing > 0 for result in results)
    return "\n".join((*lines, "", f"{shown} of {len(results)} faults are found"))


def main(words: Sequence[str]) -> int:
    """Inject the faults whose kind or file has one of the words, or all faults; returns 1 unless all are found."""
    faults = [f for f in host_faults() if not words or any(word in f"{f.kind} {f.file}" for word in words)]
    if not faults:
        raise MpsmithError(f"no fault has one of these words: {', '.join(words)}")
    say = partial(print, file=sys.stderr, flush=True)
    results = []
    for result in audit_faults(faults, len(os.sched_getaffinity(0)), say):
        results.append(result)
        counted = f"{result.failing:5} of {result.executed:5}"
        say(f"{counted}: {result.fault.kind}, {result.fault.file}: {result.message[:100]}")
    print(table(results))
    return 0 if all(result.failing for result in results) else 1


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except MpsmithError as error:
        sys.exit(f"error: {error}")
