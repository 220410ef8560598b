"""One run, read from the store once. Every finding of a run is computed from this object, but the pairs of levels.

The levels of all cases need more memory than everything else, so `pairs_seen` takes them from the store one by one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from ...simulator.upstream.host_work import HostWork
from ..model.group import GroupKey
from ..model.launches import Launches
from ..model.selection import is_narrowed
from ..model.verdicts import CaseVerdict
from ..store.records import CaseCount, ModuleRow, Run, StoredCase, StoredGroup
from ..store.store import Store
from .compiled.summary import CompiledSummary, matching_compiled_run, summarize_compiled


@dataclass(frozen=True)
class RunData:
    """The store's data of one run.

    Attributes:
        cases: the cases that did not pass, and those in which an operator fell back. Others are only counted.
        counts: all cases by group, verdict and grade.
        called_overloads: for each group the overloads that it called, True for those called by the user's own code.
        launches: by group and overload, what became of the calls where shipped kernels computed.
        host_work: by overload, what its kernel in PyTorch's host code did besides encoding commands.
        repeating: samples that were left out because they repeat others.
        shipped_kernels: the names of all kernels that the run could have launched.
        compiled: the audit under torch.compile of the same device, if the store has one.
        without_effect: by group, the inputs on which no result of it depends.
    """

    run: Run
    groups: list[StoredGroup]
    cases: list[StoredCase]
    counts: list[CaseCount]
    called_overloads: Mapping[GroupKey, Mapping[str, bool]]
    launches: list[tuple[GroupKey, str, Launches]]
    host_work: Mapping[str, HostWork] = field(default_factory=dict)
    repeating: int = 0
    shipped_kernels: tuple[str, ...] = ()
    module_rows: list[ModuleRow] = field(default_factory=list)
    compiled: CompiledSummary | None = None
    without_effect: Mapping[GroupKey, tuple[str, ...]] = field(default_factory=dict)

    @property
    def non_passes(self) -> list[StoredCase]:
        """The cases that did not pass, skipped ones and failed references included."""
        return [case for case in self.cases if case.outcome.verdict is not CaseVerdict.PASSED]

    @property
    def is_full(self) -> bool:
        """Whether the run is complete and executed everything of its sample level; `quick` does not count as full."""
        settings = self.run.settings
        narrowed = is_narrowed(settings) or settings.get("samples", "quick") == "quick"
        done = bool(self.groups) and all(group.done for group in self.groups)
        return self.run.finished is not None and not narrowed and done


def read_run(store: Store, run: Run, *, only_verdicts: bool = False) -> RunData:
    """Read a run from its store.

    `only_verdicts`: leave out what only reports show: names of shipped kernels, torch.mps and torch.compile.
    """
    verdicts = RunData(
        run=run,
        groups=store.groups(run.id),
        cases=list(store.cases(run.id, "c.verdict != 'passed' OR c.fallbacks != '[]'")),
        counts=list(store.case_counts(run.id)),
        called_overloads=store.called_overloads(run.id),
        launches=list(store.launches(run.id)),
        host_work=store.host_work(run.id),
        repeating=store.repeating(run.id),
    )
    if only_verdicts:
        return verdicts
    compiled_run = matching_compiled_run(store, run)
    return replace(
        verdicts,
        shipped_kernels=store.shipped_kernels(run.id),
        module_rows=store.module_rows(run.id),
        compiled=summarize_compiled(store, compiled_run) if compiled_run else None,
        without_effect=dict(store.without_effect(run.id)),
    )
