"""Chromium on this machine: what a page becomes when its scripts have run."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")

needs_chromium = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium here to run the page's scripts in")


def dumped_dom(page: Path, address: str = "", *, script: str = "", width: int = 1280, dark: bool = False) -> str:
    """The page's document as text, a while after it was opened from disk with `address` behind its #.

    `script` is added to the end of the page; it may do what a user would, and leave its findings in the title.
    """
    opened = page
    if script:
        opened = page.with_name(f"driven-{page.name}")
        opened.write_text(f"{page.read_text(encoding='utf-8')}<script>{script}</script>", encoding="utf-8")
    options = [f"--window-size={width},900", *(["--blink-settings=preferredColorScheme=0"] if dark else [])]
    return dom_after(4, opened, address, *options)


def dom_after(seconds: int, page: Path, address: str, *options: str) -> str:
    """The page's document as text when its own clock, which does not wait for work, has run so long."""
    assert CHROMIUM is not None
    arguments = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking"]
    arguments += [f"--user-data-dir={page.parent / 'profile'}", f"--virtual-time-budget={seconds * 1000}", "--dump-dom"]
    arguments += [*options, f"file://{page}#{address}"]
    done = subprocess.run([CHROMIUM, *arguments], capture_output=True, text=True, timeout=300, check=True)
    return done.stdout
