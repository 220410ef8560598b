"""The first release with a kernel for each operator on mps, from the committed release data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from ..audit.findings.results import AuditSummary
from ..audit.releases import data as release_data
from ..audit.releases.coverage.table import OperatorSupport, support_by_release
from ..audit.releases.surface.native_functions import functional_name
from ..errors import MpsmithError

WITH_KERNEL = (OperatorSupport.NATIVE, OperatorSupport.PARTLY_NATIVE)

# How a row of releases is drawn: a letter each.
LETTERS: dict[OperatorSupport | None, str] = {
    OperatorSupport.NATIVE: "N",
    OperatorSupport.PARTLY_NATIVE: "P",
    OperatorSupport.COMPOSITE: "C",
    OperatorSupport.FALLS_BACK: "F",
    OperatorSupport.MISSING: "M",
    OperatorSupport.SPARSE_ONLY: "S",
    OperatorSupport.MISSING_EVERYWHERE: "E",
    None: "-",
}


@dataclass(frozen=True)
class OperatorReleases:
    """One operator over the known releases.

    Attributes:
        row: a letter of LETTERS for each release, oldest first.
        since: the first release of an unbroken range with a kernel up to the audited one; None without a kernel there.
        later: without a kernel in the audited release, the first later one that has it; None where none has.
        lost: without a kernel in the audited release, the last earlier one that had it.
    """

    row: str
    since: str | None
    later: str | None
    lost: str | None


@dataclass(frozen=True)
class ReleaseHistory:
    """The release data of all operators, relative to the audited release."""

    releases: tuple[str, ...]
    audited: str
    standings: Mapping[str, tuple[OperatorSupport | None, ...]]

    def of(self, operator: str) -> OperatorReleases | None:
        """The releases of `aten::mode`; None for an operator that no release is known to have."""
        by_release = self.standings.get(functional_name(operator.removeprefix("aten::")))
        if by_release is None:
            return None
        at = self.releases.index(self.audited)
        native = [standing in WITH_KERNEL for standing in by_release]
        first = at
        while first >= 0 and native[first]:
            first -= 1
        later = next((self.releases[i] for i in range(at + 1, len(native)) if native[i]), None)
        lost = next((self.releases[i] for i in range(at - 1, -1, -1) if native[i]), None)
        return OperatorReleases(
            row="".join(LETTERS[standing] for standing in by_release),
            since=self.releases[first + 1] if native[at] else None,
            later=None if native[at] else later,
            lost=None if native[at] else lost,
        )


def history_of(summary: AuditSummary) -> ReleaseHistory | None:
    """The releases around the audited one; None where the committed data do not have it."""
    data = release_data.load()
    try:
        position = data.index(str(summary.run.environment.get("profile") or summary.surface_release))
    except MpsmithError:
        return None
    releases = tuple(facts.release for facts in data.releases)
    return ReleaseHistory(releases, releases[position], _standings())


@cache
def _standings() -> dict[str, tuple[OperatorSupport | None, ...]]:
    return support_by_release(release_data.load())
