"""What git keeps of the published report, and what `mpsmith audit --report` writes beside it."""

import shutil
import subprocess
from pathlib import Path

import pytest

from mpsmith.reports.publish import FILES

ROOT = Path(__file__).parents[3]


def git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False).stdout


@pytest.mark.skipif(shutil.which("git") is None or not (ROOT / ".git").exists(), reason="not a clone of the repository")
@pytest.mark.parametrize("name", [name for name, _ in FILES.values()])
def test_published_files_are_tracked_and_marked_as_generated(name: str) -> None:
    path = f"reports/published/{name}"
    kept = name.endswith(".md")
    assert bool(git("ls-files", path)) is kept
    assert bool(git("check-ignore", "--no-index", path)) is not kept
    if kept:
        assert git("check-attr", "linguist-generated", path).strip().endswith(": set")
