"""Clang's output as messages: severities, names of warnings, and notes with what they explain."""

from __future__ import annotations

import pytest

from mpsmith.simulator.clang import Diagnostic, Message, messages
from mpsmith.simulator.clang.diagnostics import COMPILE, Note

OUTPUT = """\
In file included from a.mm:1:
/x/b.h:3:9: note: before any message: explains nothing
a.mm:7:12: warning: unused thing [-Wunused]
a.mm:8:1: error: no type named 'Tensor'; did you mean 'at::Tensor'?
/x/b.h:40:7: note: 'at::Tensor' declared here
/x/b.h:41:7: note: candidate function not viable
a.mm:9:2: fatal error: 'gone.h' file not found
a.mm:10:5: error: method not found [-Werror,-Wobjc-method-access]
3 errors generated.
"""


def test_messages_with_their_notes() -> None:
    assert list(messages(OUTPUT)) == [
        Message("a.mm", 7, 12, "warning", "unused thing", "unused"),
        Message(
            *("a.mm", 8, 1, "error", "no type named 'Tensor'; did you mean 'at::Tensor'?", ""),
            (Note("/x/b.h", 40, "'at::Tensor' declared here"), Note("/x/b.h", 41, "candidate function not viable")),
        ),
        Message("a.mm", 9, 2, "error", "'gone.h' file not found", ""),
        Message("a.mm", 10, 5, "error", "method not found", "objc-method-access"),
    ]


def test_output_without_messages() -> None:
    assert list(messages("")) == list(messages("zig: something went wrong\n")) == []


@pytest.mark.parametrize(
    ("line", "column", "rule", "text"),
    [
        (3, 9, "link", "a.mm:3:9: error: no good [link]"),
        (3, 0, "link", "a.mm:3: error: no good [link]"),
        (0, 0, "link", "a.mm: error: no good [link]"),
        (3, 9, COMPILE, "a.mm:3:9: error: no good"),
    ],
)
def test_a_diagnostic_as_compilers_write_it(line: int, column: int, rule: str, text: str) -> None:
    assert str(Diagnostic("a.mm", line, column, "error", "no good", rule)) == text
