"""Writes the site of a report: pages of one run with the data files."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import MpsmithError

if TYPE_CHECKING:
    from ..audit.findings.results import AuditSummary, RegistryStatus
    from ..audit.store.records import Run
    from ..audit.store.store import Store
    from ..reports.evidence.devices import Findings

PUBLISHED = Path("reports/published")


def write_site_of(summary: AuditSummary, folder: Path, before: AuditSummary | None = None) -> list[Path]:
    """Write the site of an audit with its data files; returns the paths."""
    from ..registry import found_wrong
    from ..registry.files import load
    from ..registry.problems import RegistryError
    from ..reports.site.content import SiteContent
    from ..reports.site.writing import OPERATORS, write_site

    devices = _devices()
    try:
        content = SiteContent(summary, load(), found_wrong.load(), before, devices)
    except RegistryError:  # said by registered_statuses already
        content = SiteContent(summary, before=before, devices=devices)
    written = write_site(content, folder)
    operators = folder / OPERATORS
    return [*(path for path in written if path.parent != operators), operators]


def _devices() -> Findings:
    """The evidence in the registry; none if it has problems, because the site is useful without it."""
    from ..reports.evidence.adding import added_evidence
    from ..reports.evidence.devices import findings_by_device
    from ..reports.evidence.files import EvidenceError, evidence_folder

    try:
        return findings_by_device(added_evidence(evidence_folder()))
    except EvidenceError as error:
        print(f"warning: the site leaves the evidence of other machines out: {error}", file=sys.stderr)
        return {}


def earlier_audit(path: Path, store: Path, chosen: Run) -> AuditSummary:
    """The audit to compare with: a JSON report, or the newest of a store (of the same store: the one before)."""
    from ..audit.store.store import Store
    from ..reports import json_report

    if path.suffix == ".json":
        try:
            return json_report.read(path.read_text(encoding="utf-8"))
        except OSError as error:
            raise MpsmithError(f"cannot read {path}: {error.strerror}") from error
    with Store.open(path) as opened:
        same = path.resolve() == store.resolve()
        runs = [
            run for run in opened.runs() if run.finished and not run.compiled and not (same and run.id >= chosen.id)
        ]
        if not runs:
            raise MpsmithError(f"{path} has no finished audit to compare with (name a store or JSON report that has)")
        return summary_of(opened, runs[-1])


def summary_of(store: Store, run: Run) -> AuditSummary:
    """The summary of a run, including the registry's status of each operator."""
    from ..audit.findings.audited_surface import audited_surface
    from ..audit.findings.summary import summarize

    return summarize(store, run, audited_surface(run), registered_statuses())


def registered_statuses() -> dict[str, RegistryStatus]:
    """The registry's statuses; none if it has problems, which `mpsmith registry check` shows."""
    from ..registry.problems import RegistryError
    from ..reports.registry_join import registered

    try:
        return registered()
    except RegistryError as error:
        print(f"warning: the report leaves the registry out: {error}", file=sys.stderr)
        return {}
