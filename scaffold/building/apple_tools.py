"""Replaces `xcrun`, `metal` and `metallib` in a build: keeps the source instead of compiling (simulator.air.metallib).

This module is also the program behind the three commands, and behind a `sysctl` with the names of a Mac.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path

from ...cache import cache_folder, fingerprint
from ...simulator.air.metallib import programs_in, with_source
from ...simulator.metal.includes import ProgramSource, embed, include_folders

_TOOLS = ("xcrun", "metal", "metallib", "sysctl")
_WITH_VALUE = ("-o", "-I", "-D", "-sdk", "--sdk", "-isysroot", "-target", "-arch", "-x", "-MF", "-include")


def tools_folder() -> Path:
    """A folder with the commands, to be put on PATH."""
    text = f'#!/bin/sh\nexec "{sys.executable}" -m {__name__} "$(basename "$0")" "$@"\n'
    folder = cache_folder() / "apple-tools" / fingerprint(text)
    folder.mkdir(parents=True, exist_ok=True)
    for name in _TOOLS:
        path = folder / name
        if not path.is_file():
            path.write_text(text)
            path.chmod(0o755)
    return folder


def main(words: Sequence[str]) -> int:
    """Run one command; `words[0]` is its name. Returns the exit status."""
    tool, *arguments = words
    if tool == "sysctl":
        return _system_facts([word for word in arguments if not word.startswith("-")])
    if tool == "xcrun":
        while arguments and arguments[0].startswith("-"):
            option = arguments.pop(0)
            if option in ("-f", "-find", "--find"):
                print(tools_folder() / arguments[0])
                return 0
            if option in ("-sdk", "--sdk"):
                arguments = arguments[1:]
            elif option.startswith(("--show-sdk", "-show-sdk")):
                print("/" if "path" in option else "15.5")
                return 0
        tool, *arguments = arguments or ["nothing"]
    if tool not in ("metal", "metallib"):
        print(f"mpsmith has no {tool}: only metal and metallib", file=sys.stderr)
        return 1
    if "--version" in arguments or "-v" in arguments:
        print("Apple metal version 32023 (mpsmith keeps the source)")
        return 0
    return _kept(arguments)


def _system_facts(names: Sequence[str]) -> int:
    """Print what a Mac's `sysctl -n` prints: this machine's memory, and a chip's name."""
    facts = {
        "hw.memsize": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "machdep.cpu.brand_string": "Apple M2",
    }
    for name in names:
        if name not in facts:
            print(f"sysctl: unknown oid '{name}' (mpsmith answers {', '.join(facts)})", file=sys.stderr)
            return 1
        print(facts[name])
    return 0


def _kept(arguments: Sequence[str]) -> int:
    options: dict[str, list[str]] = {name: [] for name in _WITH_VALUE}
    inputs: list[Path] = []
    remaining = iter(arguments)
    for word in remaining:
        if word in _WITH_VALUE:
            options[word].append(next(remaining, ""))
        elif word.startswith(("-I", "-D")):
            options[word[:2]].append(word[2:])
        elif not word.startswith("-"):
            inputs.append(Path(word))
    gone = next((path for path in inputs if not path.is_file()), None)
    if gone is not None or not inputs:
        print(f"error: no such file or directory: '{gone or 'no input'}'", file=sys.stderr)
        return 1
    default = inputs[0].with_suffix(".air").name if "-c" in arguments else "default.metallib"
    target = Path((options["-o"] or [default])[-1])
    target.write_bytes(library_of(inputs, [Path(folder) for folder in options["-I"]], options["-D"]))
    return 0


def library_of(inputs: Sequence[Path], folders: Sequence[Path], defines: Sequence[str]) -> bytes:
    """A `.metallib` of Metal files, or of `.air` files that hold source. `folders`: the search path of headers."""
    return with_source([program for path in inputs for program in _programs(path, folders, defines)])


def _programs(path: Path, folders: Sequence[Path], defines: Sequence[str]) -> Sequence[ProgramSource]:
    data = path.read_bytes()
    if path.suffix != ".metal":
        return programs_in(data)
    program = embed(data.decode("utf-8", "replace"), str(path.absolute()), include_folders(path, folders))
    return [ProgramSource(program.text, program.lines, defines=tuple(defines))]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
