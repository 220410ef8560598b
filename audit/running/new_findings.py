"""Findings of a running audit: operators that are wrong or have no kernel, each once."""

from __future__ import annotations

import time
from collections.abc import Callable

from ..model.verdicts import CaseVerdict
from ..store.store import Store
from .progress import ProgressListener

SECONDS_BETWEEN_LOOKS = 30.0
_LISTED = 8
_WORDS = {
    CaseVerdict.WRONG: "wrong in some case",
    CaseVerdict.CRASH: "crashes",
    CaseVerdict.TIMEOUT: "does not finish",
    CaseVerdict.MISSING: "no kernel",
    CaseVerdict.FALLBACK: "runs on the CPU",
}


class NewFindings:
    """Forwards progress, and prints from time to time which operators are new among those that did not pass.

    Args:
        store, run: where the results are.
        progress: counts the cases.
        say: prints a line.
    """

    def __init__(self, store: Store, run: int, progress: ProgressListener, say: Callable[[str], None]) -> None:
        self._store = store
        self._run = run
        self._progress = progress
        self._say = say
        self._last = 0
        self._seen: set[tuple[str, CaseVerdict]] = set()
        self._looked = time.monotonic()

    def advance(self, cases: int, *, group_done: bool = True, crashed: bool = False) -> None:
        """Count executed cases, and print new findings if the last time was long ago."""
        self._progress.advance(cases, group_done=group_done, crashed=crashed)
        if time.monotonic() - self._looked >= SECONDS_BETWEEN_LOOKS:
            self.print_new()
            self._looked = time.monotonic()

    def print_new(self) -> None:
        """Print what is new since the last call."""
        self._last, rows = self._store.findings_after(self._run, self._last)
        new: dict[CaseVerdict, list[str]] = {}
        for name, word in rows:
            verdict = CaseVerdict(word)
            if (name, verdict) not in self._seen:
                self._seen.add((name, verdict))
                new.setdefault(verdict, []).append(name)
        for verdict, words in _WORDS.items():
            if names := new.get(verdict):
                more = f" and {len(names) - _LISTED} more" if len(names) > _LISTED else ""
                self._say(f"  found: {words}: {', '.join(names[:_LISTED])}{more}")
