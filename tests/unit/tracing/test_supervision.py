"""Signals reach a traced program once."""

from __future__ import annotations

import os
import pty
import subprocess
import sys

PROGRAM = """
import sys
from mpsmith.tracing.supervision import _is_in_foreground
print(_is_in_foreground())
"""


def in_foreground(*, terminal: bool) -> str:
    """Whether a process with redirected streams takes itself for one that a terminal's Ctrl-C reaches."""
    if not terminal:
        command = [sys.executable, "-c", PROGRAM]
        return subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=True, start_new_session=True
        ).stdout.strip()
    read, write = os.pipe()
    child, _ = pty.fork()
    if not child:  # in a separate session, whose terminal is the new one
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(write, 1)
        os.execv(sys.executable, [sys.executable, "-c", PROGRAM])
    os.close(write)
    with os.fdopen(read) as output:
        answered = output.read().strip()
    os.waitpid(child, 0)
    return answered


def test_ctrl_c_reaches_a_program_with_redirected_input_from_the_terminal_alone() -> None:
    assert in_foreground(terminal=True) == "True"
    assert in_foreground(terminal=False) == "False"
