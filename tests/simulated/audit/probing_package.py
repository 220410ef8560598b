"""Probes of torch.mps that do what must cost one row each. Imported by the workers through `imports`."""

from __future__ import annotations

import ctypes
import os

from mpsmith.audit.running.mps_module.probe import row


def abort_with_a_word() -> None:
    os.write(2, b"[E1122 00:27:50.123456789 Thing.cpp:12] the end is near\n")
    os.write(2, b"thing.py:1: UserWarning: and this does not say why\n")
    os.abort()


def hang_in_c() -> None:
    ctypes.CDLL(None).pause()


mpsmith_module_probes = [
    row("torch.mps.chatting", lambda: os.write(2, b"what an earlier probe says\n"), "torch.mps"),
    row("torch.mps.aborting_in_silence", os.abort, "torch.mps"),
    row("torch.mps.aborting", abort_with_a_word, "torch.mps"),
    row("torch.mps.hanging", hang_in_c, "torch.mps"),
    row("torch.mps.after_both", lambda: None, "torch.mps"),
]
