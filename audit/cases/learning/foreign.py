"""The program that learns calls of operators outside torch: it reads a request and fills the memory that it names.

A program of its own, because learning starts worker processes and those of an audit may not.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from ..calls.memory import Memory
from .learning import OverloadToLearn, learn


def main() -> None:
    """Learn what standard input asks for, and write it."""
    request = json.load(sys.stdin)
    folder = Path(request["folder"])
    memory = Memory.load(folder)
    before = dict(memory.overloads)
    targets = [OverloadToLearn(name) for name in request["overloads"]]
    for _ in learn(targets, memory, 1, lambda progress: None, record=False, imports=request["packages"]):
        pass
    Memory(memory.torch, {**before, **memory.overloads}).save(folder)


if __name__ == "__main__":
    main()
