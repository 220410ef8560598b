"""Probes of torch.mps that do what must cost one row each. Imported by the workers through `imports`."""

from __future__ import annotations

import ctypes
import os

from mpsmith.audit.mps_module.probes import row


def hang_in_c() -> None:
    ctypes.CDLL(None).pause()


mpsmith_module_probes = [
    row("torch.mps.aborting", os.abort, "torch.mps"),
    row("torch.mps.hanging", hang_in_c, "torch.mps"),
    row("torch.mps.after_both", lambda: None, "torch.mps"),
]
