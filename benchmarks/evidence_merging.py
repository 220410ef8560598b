"""`mpsmith evidence add` of the files of 200 devices into a copy of the registry: checked, merged, and recorded.

The files are made here, each of another chip, macOS and torch: every overload of the installed torch in six dtypes, of
which one in fifteen does not pass; devices differ in one row of fifty. Processor time; the goal is 10 s for all.
"""

from __future__ import annotations

import gzip
import json
import os
import random
import resource
import shutil
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

DEVICES = 200
DTYPES = ("float32", "float16", "bfloat16", "int64", "int32", "bool")
FAILURES = ("wrong", "dtype gap", "fallback")
MARK = "mpsmith-evidence"


@dataclass(frozen=True)
class Variant:
    """What some devices show of an overload: its row, how many cases had each verdict, and those that fail."""

    row: dict[str, Any]
    cases: Counter[str]
    failing: dict[str, list[dict[str, Any]]]


def main() -> None:
    from mpsmith.registry.folder import PACKAGED
    from mpsmith.reports.evidence.adding import add

    os.environ["MPSMITH_KERNELS"] = "off"
    with tempfile.TemporaryDirectory() as folder:
        registry = Path(folder) / "registry"
        shutil.copytree(PACKAGED, registry)
        files = made_files(Path(folder))
        start, held = time.process_time(), peak()
        added = add(files, registry)
        seconds = time.process_time() - start
        assert added.synced is not None
        assert len(added.files) == DEVICES
        synced = len(added.synced.added) + len(added.synced.changed)
        sizes = [path.stat().st_size for path in files]
    print(f"  {DEVICES} files of {min(sizes) // 1024} to {max(sizes) // 1024} KB; {synced:,} operators measured")
    print(f"  merged in {seconds:.1f} s (at most 10), {seconds / DEVICES * 1e3:.0f} ms each; {peak() - held:.0f} MB")


def made_files(folder: Path) -> list[Path]:
    from mpsmith.audit.releases.surface import installed_surface

    draw = random.Random(0)
    names = [each.name for each in installed_surface().overloads if each.dispatch is not None]
    usual = {name: variant(name, draw, passes=draw.random() > 1 / 15) for name in names}
    paths = []
    for number in range(DEVICES):
        shown = dict(usual)
        for name in draw.sample(names, len(names) // 50):
            shown[name] = variant(name, draw, passes=draw.random() > 0.5)
        path = folder / f"{number}.json.gz"
        path.write_bytes(gzip.compress(json.dumps(evidence_of(shown, number)).encode(), compresslevel=6))
        paths.append(path)
    return paths


def variant(name: str, draw: random.Random, *, passes: bool) -> Variant:
    dtypes, cases, failing = {}, Counter[str](), {}
    for dtype in DTYPES:
        number = draw.randint(2, 12)
        if passes or draw.random() < 0.5:
            verdict, counts = "native", {"passed": number}
        else:
            verdict = draw.choice(FAILURES)
            counts = {"passed": number, verdict: 2 * number}
            at = {"verdict": verdict, "message": f"{number} of {12 * number} elements differ", "positions": []}
            at["positions"] = list(range(2 * number))
            failing[f"schema:{name.removeprefix('aten::')}:{dtype}"] = [at]
        dtypes[dtype] = {"verdict": verdict, "cases": counts}
        cases.update(counts)
    return Variant({"dispatch": "native", "dtypes": dtypes}, cases, failing)


def evidence_of(shown: dict[str, Variant], number: int) -> dict[str, Any]:
    cases: Counter[str] = Counter()
    for each in shown.values():
        cases.update(each.cases)
    machine = {"chip": f"Apple M{1 + number % 5}", "system": "macOS", "release": f"{14 + number // 5 % 4}.1"}
    torch = f"2.{7 + number // 20}.0"
    return {
        "format": MARK,
        "version": 1,
        "mpsmith": "0.1.0",
        "collected": f"2026-01-{1 + number % 28:02}T00:00:00+00:00",
        "simulated": False,
        "machine": machine | {"machine": "arm64", "torch": torch, "python": "3.12.4"},
        "audit": {
            "simulated": False,
            "samples": "quick",
            "complete": True,
            "executed": cases.total(),
            "cases": dict(cases),
            "overloads": {name: each.row for name, each in shown.items()},
            "failing": {group: alike for each in shown.values() for group, alike in each.failing.items()},
        },
        "kernels": [],
    }


def peak() -> float:
    """The most memory that this process has had, in megabytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (2**20 if sys.platform == "darwin" else 2**10)


if __name__ == "__main__":
    main()
