"""What a probe of one public name of torch.mps showed. Imports no torch: the store and the reports use it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class ModuleStatus(str, Enum):
    """What became of one name."""

    WORKS = "present and works"
    FAILS = "present, fails"
    MISSING = "missing"
    NOT_PROBED = "not probed"


@dataclass(frozen=True)
class ModuleRow:
    """One name of the module's surface ("torch.mps.synchronize"): its status, and why on one line, or ""."""

    name: str
    status: ModuleStatus
    detail: str = ""
