"""Summarizes a recording: fallbacks and waits by call site, and the kernels that replace fallbacks."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field

from ..audit.answers.answer import Answer, answer, audited_release
from ..audit.answers.sentences import is_a_gap
from ..audit.releases import data as release_data
from ..audit.releases.data import release_order
from ..errors import MpsmithError
from .recording import CallKind, CallRow, CallSite, Recording


@dataclass
class SiteCalls:
    """The calls of one overload from one call site, forward or backward, with any operands."""

    overload: str
    kind: CallKind
    site: CallSite
    backward: bool
    rows: list[CallRow] = field(default_factory=list)

    @property
    def calls(self) -> int:
        """The number of calls."""
        return sum(row.calls for row in self.rows)

    @property
    def bytes_to_cpu(self) -> int:
        """Bytes copied to the CPU by all calls."""
        return sum(row.bytes_to_cpu for row in self.rows)

    @property
    def bytes_to_mps(self) -> int:
        """Bytes copied to the device by all calls."""
        return sum(row.bytes_to_mps for row in self.rows)

    @property
    def nanoseconds(self) -> int:
        """Host time in all calls."""
        return sum(row.nanoseconds for row in self.rows)

    @property
    def operands(self) -> list[str]:
        """The different operands, the most frequent first; "others" for those beyond the limit."""
        rows = sorted(self.rows, key=lambda row: -row.calls)
        return ["others" if row.operands is None else " ".join(map(str, row.operands)) for row in rows]


def by_call_site(rows: Iterable[CallRow]) -> list[SiteCalls]:
    """The rows grouped by overload and call site, the longest first."""
    by_key: dict[tuple[str, CallKind, CallSite, bool], SiteCalls] = {}
    for row in rows:
        key = (row.overload, row.kind, row.site, row.backward)
        by_key.setdefault(key, SiteCalls(*key)).rows.append(row)
    return sorted(by_key.values(), key=lambda at: (-at.nanoseconds, at.overload, at.site.file, at.site.line))


@dataclass(frozen=True)
class Summary:
    """A summary of a recording.

    Attributes:
        fallbacks: by overload and call site. `waits`: likewise copies to the CPU and synchronisations; `copies_to_mps`:
            likewise copies to the device.
        unseen: fallbacks without a call site, from the counters of the simulated device.
        replaced: operators among the fallbacks with a kernel in `import mpsmith.kernels`; `lacking`: the others.
        forbidden: the fallbacks that are not allowed.
        elapsed: from the start of the first call on mps to the end of the last one, in nanoseconds.
    """

    recording: Recording
    fallbacks: Sequence[SiteCalls]
    waits: Sequence[SiteCalls]
    copies_to_mps: Sequence[SiteCalls]
    unseen: dict[str, int]
    replaced: tuple[str, ...]
    lacking: tuple[str, ...]
    forbidden: tuple[str, ...]
    elapsed: int

    def calls(self, kind: CallKind) -> int:
        """The number of calls of a kind."""
        return sum(row.calls for row in self.recording.rows if row.kind is kind)

    @property
    def share(self) -> float:
        """The share of the time between the first and the last call that fallbacks took."""
        return sum(map(self.share_of, self.fallbacks))

    def share_of(self, at: SiteCalls) -> float:
        """The part of that time that was spent in these calls; with several threads it may exceed 1."""
        return at.nanoseconds / self.elapsed if self.elapsed else 0.0


def summarize(recording: Recording, *, kernels: Collection[str] = (), allowed: Collection[str] = ()) -> Summary:
    """Summarize a recording.

    `kernels`: the operators that have a finished kernel. `allowed`: operators or overloads that may fall back.
    """
    unseen = recording.unseen_fallbacks()
    overloads = sorted({row.overload for row in recording.fallbacks} | set(unseen))
    operators = sorted({operator_of(overload) for overload in overloads})
    waiting = (CallKind.from_mps, CallKind.synchronisation)
    start, end = recording.span or (0, 0)
    return Summary(
        recording=recording,
        fallbacks=by_call_site(recording.fallbacks),
        waits=by_call_site(row for row in recording.rows if row.kind in waiting and row.calls),
        copies_to_mps=by_call_site(row for row in recording.rows if row.kind is CallKind.to_mps and row.calls),
        unseen=unseen,
        replaced=tuple(name for name in operators if name in kernels),
        lacking=tuple(name for name in operators if name not in kernels),
        forbidden=tuple(name for name in overloads if not is_allowed(name, allowed)),
        elapsed=end - start,
    )


def operator_of(overload: str) -> str:
    """`aten::softshrink` of `aten::softshrink.out`."""
    return overload.split(".")[0]


def is_allowed(overload: str, allowed: Collection[str]) -> bool:
    """Whether the overload or its operator is named, with or without `aten::`."""
    names = {name if "::" in name else f"aten::{name}" for name in allowed}
    return overload in names or operator_of(overload) in names


def advice(summary: Summary) -> str:
    """One sentence of advice, "" if nothing fell back."""
    replaced, lacking = summary.replaced, summary.lacking
    total = len(replaced) + len(lacking)
    if not total:
        return ""
    facts = release_data.facts_for(summary.recording.fact("torch") or audited_release())
    gaps = [name for name in lacking if facts and is_a_gap(name, facts.release)]
    sentences = [_replaced_sentence(replaced, lacking, gaps)]
    for release, names in upgrades(summary).items():
        sentences.append(f"torch {release} runs {', '.join(names)} on mps: `pip install --upgrade 'torch>={release}'`")
    return "; ".join(sentences)


def upgrades(summary: Summary) -> dict[str, list[str]]:
    """The operators among the fallbacks that a later release runs on mps, by that release."""
    by_release: dict[str, list[str]] = {}
    for name in sorted((*summary.replaced, *summary.lacking)):
        answered = _answer(name, summary.recording.fact("profile") or summary.recording.fact("torch"))
        if answered and answered.upgrade:
            by_release.setdefault(answered.upgrade, []).append(name)
    return dict(sorted(by_release.items(), key=lambda item: release_order(item[0])))


def _answer(operator: str, release: str | None) -> Answer | None:
    """The answer about an operator in the release that ran; None if mpsmith has no data of one of them."""
    try:
        return answer(operator, release)
    except MpsmithError:
        return None


def _replaced_sentence(replaced: Sequence[str], lacking: Sequence[str], gaps: Sequence[str]) -> str:
    """Which of the operators that fall back `import mpsmith.kernels` replaces, and how to start a kernel for a gap."""
    total = len(replaced) + len(lacking)
    scaffolds = ", ".join(f"`mpsmith scaffold {name}`" for name in gaps)
    if not lacking:
        which = "The operator that falls back is" if total == 1 else f"All {total} operators that fall back are"
        return f"{which} replaced by `import mpsmith.kernels`"
    if not replaced:
        start = f"; start one: {scaffolds}" if scaffolds else ""
        return f"mpsmith has no kernel for {', '.join(lacking)} yet{start}"
    are, are_not = "are" if len(replaced) > 1 else "is", "are not" if len(lacking) > 1 else "is not"
    return (
        f"{len(replaced)} of {total} operators that fall back {are} replaced by `import mpsmith.kernels`; "
        f"{', '.join(lacking)} {are_not}" + (f": {scaffolds}" if scaffolds else "")
    )


def finished_kernels() -> frozenset[str]:
    """The operators that `import mpsmith.kernels` has a kernel for, by the registry. It needs no torch."""
    from ..registry.kernel_index import kernel_entries

    return frozenset(name for name, entry in kernel_entries().items() if entry.status in _FINISHED)


_FINISHED = ("implemented", "verified", "upstreamed")
