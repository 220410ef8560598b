"""What torch's headers for mps declare and its library for macOS defines: each function is here, or raises by name.

python -m pytest tests/simulated/objc/test_host_interface.py -m network
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pytest
import torch

from mpsmith.audit.releases.wheel.byte_ranges import MappedRanges
from mpsmith.audit.releases.wheel.macho import N_TYPE, NLIST, read_header
from mpsmith.scaffold.release_files import torch_folder
from mpsmith.simulator.objc.closed_functions import refusing_of_the_host
from mpsmith.simulator.objc.host_libraries import torch_graphs_library, torch_host_library

pytestmark = [pytest.mark.network, pytest.mark.timeout(600)]  # what `mpsmith check --setup` fetches

HEADERS = ("ATen/mps/*.h", "ATen/native/mps/*.h")
_OF_MPS = re.compile(rb"_(_ZNK?2at(?:6native)?3mps\w+)\0")
_EXTERNAL, _IN_A_SECTION, _WEAK = 0x1, 0xE, 0x80
# What is called through a base class: MPSHooksInterface, DeviceGuardImplInterface and IMPSAllocator.
_BEHIND_A_BASE = ("MPSHooks::", "MPSGuardImpl::", "MPSHeapAllocatorImpl::")
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)


def names_of(symbols: Iterable[str]) -> set[str]:
    """Qualified names without arguments, tags and template arguments."""
    done = subprocess.run(["c++filt"], input="\n".join(symbols), capture_output=True, text=True, check=True)
    return {name for line in done.stdout.splitlines() if (name := _name(line))}


def _name(demangled: str) -> str:
    if re.search(r"\{|anonymous|_block_invoke|^(?:vtable|typeinfo|guard|VTT)", demangled):
        return ""
    text, depth = "", 0
    for letter in demangled.replace("[abi:cxx11]", ""):
        depth += (letter == "<") - (letter == ">")
        text += letter if depth == 0 and letter != ">" else ""
    head, call, _ = text.partition("(")
    return head.split()[-1] if call and head.split() else ""


@pytest.fixture(scope="module")
def declared() -> dict[str, str]:
    """The functions that torch's headers declare and its library for macOS exports: a symbol by name.

    An extension compiles the others, which are inline, from the headers.
    """
    include = Path(torch.__file__).parent / "include"
    text = "\n".join(path.read_text() for pattern in HEADERS for path in include.glob(pattern))
    words = set(re.findall(r"\w+", _COMMENT.sub("", text)))
    library = torch_folder(torch.__version__.split("+")[0]) / "torch" / "lib" / "libtorch_cpu.dylib"
    symbols = exported(library)
    by_name: dict[str, str] = {}
    done = subprocess.run(["c++filt"], input="\n".join(symbols), capture_output=True, text=True, check=True)
    for symbol, line in zip(symbols, done.stdout.splitlines(), strict=True):
        name = _name(line)
        operator = include / "ATen" / "ops" / f"{name.removeprefix('at::mps::')}.h"  # at::mps::clamp is an operator
        if (
            name.startswith("at::")
            and not operator.is_file()
            and all(part.lstrip("~") in words for part in name.split("::")[2:] if part != "mps")
        ):
            by_name[name] = symbol
    return by_name


def exported(library: Path) -> list[str]:
    """The functions of torch's mps backend that a dylib exports and no header defines."""
    source = MappedRanges(library)
    header = read_header(source)
    table = np.frombuffer(source.take(header.symbol_offset, header.symbol_count * NLIST.itemsize), NLIST)
    strings = bytes(source.take(header.string_offset, header.string_size))
    is_external = (table["type"] & (N_TYPE | _EXTERNAL)) == (_IN_A_SECTION | _EXTERNAL)
    names = table["name"][is_external & ((table["desc"] & _WEAK) == 0)].tolist()
    return sorted({match[1].decode() for place in names if (match := _OF_MPS.match(strings, place))})


def test_each_function_is_here_or_raises_with_its_name(declared: dict[str, str]) -> None:
    libraries = [str(torch_host_library()), str(torch_graphs_library())]
    done = subprocess.run(["nm", "-D", "--defined-only", *libraries], capture_output=True, text=True, check=True)
    here = names_of(line.split()[-1] for line in done.stdout.splitlines() if line.count(" ") > 1)
    missing = {name: symbol for name, symbol in declared.items() if name not in here}
    behind = {name for name in missing if any(part in name for part in _BEHIND_A_BASE)}
    others = sorted(missing.keys() - behind)
    counts = f"{len(missing) - len(others)} are reached through a base class; missing: {others}"
    print(f"{len(declared) - len(missing)} of {len(declared)} functions are here, {counts}")
    assert len(declared) > 200
    assert len(others) <= 23, others
    assert {name for name, symbol in missing.items() if refusing_of_the_host([symbol]) == ""} == set()
