"""The content of a site."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ...audit.findings.results import AuditSummary
from ...registry.found_wrong import FoundWrong
from ...registry.model import Entry
from ..evidence.devices import Findings


@dataclass(frozen=True)
class SiteContent:
    """The data that a site shows.

    Attributes:
        summary: the audit.
        registry: the registry's entries by operator.
        found_wrong: the wrong results that mpsmith found in shipped kernels, by name.
        before: an earlier audit to compare with; None without one.
        devices: the evidence of other machines.
    """

    summary: AuditSummary
    registry: Mapping[str, Entry] = field(default_factory=dict)
    found_wrong: Mapping[str, FoundWrong] = field(default_factory=dict)
    before: AuditSummary | None = None
    devices: Findings = field(default_factory=dict)
