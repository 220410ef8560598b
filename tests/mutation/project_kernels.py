"""`project_kernels.py FOLDER MUTANTS SEED SECONDS [FILE ...]`: which changes of its kernels does `mpsmith try` find?

Each mutant changes one place of one `.metal` file, of all or of those named. It is found if a test that was right is
not, within the seconds that each test may take, or the file does not compile any more. The folder stays as it is.
"""

from __future__ import annotations

import random
import re
import shutil
import sys
import tempfile
from pathlib import Path

from mpsmith.scaffold.checkout.results import TryResult
from mpsmith.scaffold.checkout.trying import try_checkout

RIGHT = (TryResult.RIGHT, TryResult.ACCEPTED)
CHANGES = {
    r" < ": " <= ",
    r" <= ": " < ",
    r" > ": " >= ",
    r" >= ": " > ",
    r" == ": " != ",
    r" \+ ": " - ",
    r" - ": " + ",
    r" \* ": " + ",
    r" / ": " * ",
    r" && ": " || ",
    r" \|\| ": " && ",
    r"\+= ": "-= ",
    r"\bmin\(": "max(",
    r"\bmax\(": "min(",
    r"\b0u?;": "1;",
    r"\bthreadgroup_barrier\([^;]*\);": ";",
    r"\btrue\b": "false",
    r"\[\w+\] = ": "[0] = ",
    r"\bcontinue;": ";",
    r"\breturn;": ";",
}
_SKIPPED = re.compile(r"^\s*(//|#|for \(|template|constant constexpr)|\[\[|\breference")


def places(folder: Path) -> list[tuple[Path, int, str, str]]:
    """All changes: the file, the number of the line, its new text, and what was changed."""
    changes = []
    for path in sorted(folder.rglob("*.metal")):
        for number, line in enumerate(path.read_text().splitlines()):
            for old, new in () if _SKIPPED.search(line) else CHANGES.items():
                for match in re.finditer(old, line.partition("//")[0]):
                    text = f"{line[: match.start()]}{new}{line[match.end() :]}\n"
                    changes.append((path, number, text, f"{match[0].strip()} -> {new.strip()}"))
    return changes


if __name__ == "__main__":
    folder, mutants, seed, seconds = Path(sys.argv[1]), *map(int, sys.argv[2:5])
    with tempfile.TemporaryDirectory() as temporary:
        copy = Path(shutil.copytree(folder, Path(temporary) / folder.name))
        passing = {row.name for row in try_checkout(copy, seconds) if row.result in RIGHT}
        print(f"{len(passing)} files and tests are right without a change", flush=True)
        all_places = [place for place in places(copy) if place[0].name in (sys.argv[5:] or [place[0].name])]
        for file, place, changed, what in random.Random(seed).sample(all_places, mutants):
            before = file.read_text()
            lines = before.splitlines(keepends=True)
            file.write_text("".join([*lines[:place], changed, *lines[place + 1 :]]))
            missed = (row for row in try_checkout(copy, seconds) if row.result not in RIGHT and row.name in passing)
            outcome = next((f"{row.result.value}: {row.name}: {row.reason[:120]}" for row in missed), "survived")
            print(f"{file.name}:{place + 1}: {what}: {outcome}", flush=True)
            file.write_text(before)
