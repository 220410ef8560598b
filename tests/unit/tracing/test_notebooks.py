"""A trace in a notebook: its text, its HTML, and the names of cells."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from mpsmith.tracing import call_sites, text
from mpsmith.tracing.recording import CallKind, CallRow, CallSite, Recording
from mpsmith.tracing.summary import summarize


def test_text_and_html_are_not_empty_where_rich_sees_a_notebook(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rich.console._is_jupyter", lambda: True)
    monkeypatch.setenv("FORCE_COLOR", "1")  # as ipykernel does
    row = CallRow("aten::mode", CallKind.fallback, False, CallSite("In[3]", 2), (), 1, 0, 0, 0, 5, 1)
    summary = summarize(Recording(rows=[row], facts={1: {"simulated": True, "profile": "2.13.0"}}))
    assert "In[3]:2" in text.as_text(summary)
    assert "\x1b" not in text.as_text(summary)
    html = text.as_html(summary)
    assert html.startswith("<pre")
    assert "aten::mode" in html


def test_cells_are_named_as_cells(monkeypatch: pytest.MonkeyPatch) -> None:
    def format_code_name(file: str) -> tuple[str, str] | None:
        return ("Cell", "In[3]") if "ipykernel" in file else None

    shell = SimpleNamespace(compile=SimpleNamespace(format_code_name=format_code_name))
    monkeypatch.setitem(call_sites.sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    assert call_sites._file_of("/tmp/ipykernel_7/123.py") == "In[3]"
    assert call_sites._file_of("/home/me/train.py") == "/home/me/train.py"
