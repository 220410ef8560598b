"""`mpsmith check` of one extension: without precompiled headers, with them, and answered from the cache.

The figures are ratios of one run on one machine. Needs `mpsmith check --setup`.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

from mpsmith.scaffold.errors import ToolchainError
from mpsmith.scaffold.generation.destination import folder_as_destination
from mpsmith.scaffold.generation.writing import plan, write
from mpsmith.scaffold.manifest import Manifest
from mpsmith.scaffold.operators.kinds import KernelKind
from mpsmith.scaffold.operators.source import source_of
from mpsmith.scaffold.proof.checking import check_files
from mpsmith.scaffold.proof.toolchain import find
from mpsmith.scaffold.targets import Request, extension


def seconds(file: Path, *, use_cache: bool = False, precompile: bool = True) -> float:
    start = time.perf_counter()
    (result,) = check_files([file], use_cache=use_cache, precompile=precompile)
    assert result.accepted, result.findings
    return time.perf_counter() - start


def main() -> None:
    """Print the three times and their ratios."""
    try:
        find()
    except ToolchainError as error:
        print(f"skipped: {error}")
        return
    request = Request(source_of(None).operator("softshrink"), KernelKind.UNARY)
    made = extension.generate(request)
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        manifest = Manifest("aten::softshrink", "extension", "unary", "", made.registers, (), made.definitions)
        write(plan(folder_as_destination(folder), made.files, manifest))
        file = folder / "src" / "softshrink.mm"
        plain = seconds(file, precompile=False)
        seconds(file)  # builds the precompiled header where there is none yet
        changed = seconds(file)
        unchanged = seconds(file, use_cache=True)
    print(f"without precompiled headers  {plain:6.2f} s")
    print(f"changed file, with them      {changed:6.2f} s  {plain / changed:5.1f} times as fast")
    print(f"unchanged file, cached       {unchanged:6.2f} s  {plain / unchanged:5.1f} times as fast")


if __name__ == "__main__":
    main()
