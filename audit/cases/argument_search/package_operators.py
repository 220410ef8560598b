"""The program that searches calls of the operators of packages: it reads a request and fills the folder that it names.

A separate program, because the search starts worker processes and those of an audit may not.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from ..calls.recorded_calls import RecordedCalls
from .engine import SearchedOverload, search_calls


def main() -> None:
    """Search the calls that standard input asks for, and write them."""
    request = json.load(sys.stdin)
    folder = Path(request["folder"])
    recorded_calls = RecordedCalls.load(folder)
    before = dict(recorded_calls.overloads)
    targets = [SearchedOverload(name) for name in request["overloads"]]
    for _ in search_calls(targets, recorded_calls, 1, lambda progress: None, record=False, imports=request["packages"]):
        pass
    RecordedCalls(recorded_calls.torch, {**before, **recorded_calls.overloads}).save(folder)


if __name__ == "__main__":
    main()
