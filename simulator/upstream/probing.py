"""Loads a built library in a separate process, to find out whether it loads and which selectors are not implemented.

`python -m mpsmith.simulator.upstream.probing LIBRARY` prints these selectors.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from ..errors import UpstreamError

_KEPT = "selectors.json"
_TIMEOUT_S = 300


def missing_selectors(library: Path) -> list[str]:
    """The selectors that a library sends and nothing implements; kept beside it.

    Raises UpstreamError if the library does not load.
    """
    kept_file = library.with_name(_KEPT)
    if kept_file.is_file():
        return list(json.loads(kept_file.read_text("utf-8")))
    words = [sys.executable, "-m", __name__, str(library)]
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=_TIMEOUT_S)
    if done.returncode:
        last = (done.stderr.strip().splitlines() or [f"it ended with status {done.returncode}"])[-1]
        raise UpstreamError(f"{library.name} does not load: {last}")
    missing = done.stdout.split()
    kept_file.write_text(json.dumps(missing) + "\n")
    return missing


def main(library: str) -> None:
    """Print the selectors."""
    from ..device import loading as device
    from ..device.coverage_profile import CoverageProfile
    from ..objc.loading import unknown_selectors

    nothing: frozenset[str] = frozenset()
    device.load(CoverageProfile("none", nothing, nothing, nothing))
    print("\n".join(unknown_selectors(Path(library))))


if __name__ == "__main__":
    main(sys.argv[1])
