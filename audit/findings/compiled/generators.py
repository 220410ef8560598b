"""Audits under torch.compile with several code generators side by side: what each lowers, and gets right and wrong."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from ....errors import MpsmithError
from ....registry.torch_release import is_older, public_version
from ...compiled.verdicts import CompiledVerdict, worst_compiled
from ...store.records import Run
from ...store.store import Store
from .summary import operator_of


@dataclass(frozen=True)
class GeneratorRun:
    """What one audit found, case by case.

    Attributes:
        release: whose code generator it was.
        overlay: whether that was laid over the Inductor of another one.
        verdicts: of every executed case, by its label.
        operators: of every case the operator that it is about.
        base: the release whose Inductor it was laid over; the release itself where it was not.
    """

    release: str
    overlay: bool
    verdicts: Mapping[str, CompiledVerdict]
    operators: Mapping[str, str]
    base: str = ""

    def operator_verdicts(self, labels: Iterable[str]) -> dict[str, CompiledVerdict]:
        """The worst verdict of each operator in these cases."""
        found: dict[str, list[CompiledVerdict]] = {}
        for label in labels:
            found.setdefault(self.operators[label], []).append(self.verdicts[label])
        return {name: worst for name, each in found.items() if (worst := worst_compiled(each))}


@dataclass(frozen=True)
class GeneratorCounts:
    """How many operators a code generator lowers and how they come out, in the cases that every audit executed.

    Attributes:
        run: the audit.
        operators: how many operators there are.
        lowered: of these, how many have generated Metal that is right in all cases.
        right: how many are right in all cases, whoever computes.
        wrong: how many are wrong in some case.
        others: how many are neither: refused, not lowered, racing.
        mended: what is right here and was not with the generator before, by name.
        broken: what was right with the generator before and is not here.
        verdicts: of each operator, its worst.
    """

    run: GeneratorRun
    operators: int
    lowered: int
    right: int
    wrong: int
    others: int
    mended: tuple[str, ...]
    broken: tuple[str, ...]
    verdicts: Mapping[str, CompiledVerdict]


def generator_runs(store: Store) -> list[GeneratorRun]:
    """The newest finished audit under torch.compile of each code generator, the oldest release first.

    Raises MpsmithError where there are fewer than two.
    """
    finished = [run for run in store.runs() if run.compiled and run.finished is not None]
    newest = {(release_of(run), bool(run.environment.get("codegen"))): run for run in finished}
    if len(newest) < 2:
        raise MpsmithError(
            f"{store.path}: there are not two audits under torch.compile with different code generators"
            " (run `mpsmith audit --compile`, and again with --codegen RELEASE)"
        )
    # A release itself stands before its generator over another one.
    ordered = sorted(newest, key=lambda key: (sum(is_older(other, key[0]) for other, _ in newest), key[1]))
    return [_generator_run(store, key[0], newest[key]) for key in ordered]


def release_of(run: Run) -> str:
    """The release whose code generator an audit under torch.compile ran with."""
    return str(run.environment.get("codegen") or public_version(str(run.environment["torch"])))


def _generator_run(store: Store, release: str, run: Run) -> GeneratorRun:
    verdicts: dict[str, CompiledVerdict] = {}
    operators: dict[str, str] = {}
    for case in store.compiled_cases(run.id):
        if case.found.verdict.executed:
            verdicts[case.label] = case.found.verdict
            operators[case.label] = operator_of(case.group.operator)
    base = public_version(str(run.environment["torch"]))
    return GeneratorRun(release, bool(run.environment.get("codegen")), verdicts, operators, base)


def compared(runs: Sequence[GeneratorRun]) -> list[GeneratorCounts]:
    """The counts of each audit over the cases that all of them executed."""
    common = set.intersection(*(set(run.verdicts) for run in runs))
    worst = [run.operator_verdicts(common) for run in runs]
    first = _counts(runs[0], worst[0], {})
    return [first, *(_counts(run, now, before) for run, (before, now) in zip(runs[1:], pairwise(worst), strict=True))]


def _counts(
    run: GeneratorRun, verdicts: Mapping[str, CompiledVerdict], before: Mapping[str, CompiledVerdict]
) -> GeneratorCounts:
    right = sum(each.is_right for each in verdicts.values())
    wrong = sum(each is CompiledVerdict.WRONG for each in verdicts.values())
    return GeneratorCounts(
        run,
        len(verdicts),
        sum(each.lowered for each in verdicts.values()),
        right,
        wrong,
        len(verdicts) - right - wrong,
        tuple(sorted(name for name, was in before.items() if not was.is_right and verdicts[name].is_right)),
        tuple(sorted(name for name, was in before.items() if was.is_right and not verdicts[name].is_right)),
        verdicts,
    )
