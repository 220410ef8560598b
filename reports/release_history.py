"""The support of each operator on mps in every release, from the committed release data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from ..audit.findings.results import AuditSummary
from ..audit.releases import data as release_data
from ..audit.releases.coverage.table import OperatorSupport, support_by_release
from ..audit.releases.surface.native_functions import functional_name
from ..errors import MpsmithError

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
class ReleaseHistory:
    """The release data of all operators, relative to the audited release."""

    releases: tuple[str, ...]
    audited: str
    support: Mapping[str, tuple[OperatorSupport | None, ...]]

    def row(self, operator: str) -> str:
        """A letter of LETTERS for each release, oldest first; "" for an operator that no release is known to have."""
        by_release = self.support.get(functional_name(operator.removeprefix("aten::")), ())
        return "".join(LETTERS[support] for support in by_release)


def history_of(summary: AuditSummary) -> ReleaseHistory | None:
    """The releases around the audited one; None if the committed data do not have it."""
    data = release_data.load()
    try:
        position = data.index(str(summary.run.environment.get("profile") or summary.surface_release))
    except MpsmithError:
        return None
    releases = tuple(facts.release for facts in data.releases)
    return ReleaseHistory(releases, releases[position], _support_by_operator())


@cache
def _support_by_operator() -> dict[str, tuple[OperatorSupport | None, ...]]:
    return support_by_release(release_data.load())
