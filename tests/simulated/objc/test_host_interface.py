"""What torch's headers for mps declare and its library for macOS defines: each function is here, or raises by name.

python -m pytest tests/simulated/objc/test_host_interface.py -m network
"""

from __future__ import annotations

import mmap
import re
import subprocess
from collections.abc import Iterable
from pathlib import Path

import pytest
import torch

from mpsmith.scaffold.release_files import torch_folder
from mpsmith.simulator.objc.closed_functions import refusing_of_the_host
from mpsmith.simulator.objc.host_libraries import torch_graphs_library, torch_host_library

pytestmark = [pytest.mark.network, pytest.mark.timeout(600)]  # what `mpsmith check --setup` fetches

HEADERS = ("ATen/mps/*.h", "ATen/native/mps/*.h")
_DEFINED = re.compile(rb"\0_(_ZNK?2at(?:6native)?3mps\w+)")
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
    """The functions of torch's library for macOS that its headers declare: a symbol by name."""
    include = Path(torch.__file__).parent / "include"
    text = "\n".join(path.read_text() for pattern in HEADERS for path in include.glob(pattern))
    words = set(re.findall(r"\w+", _COMMENT.sub("", text)))
    library = torch_folder(torch.__version__.split("+")[0]) / "torch" / "lib" / "libtorch_cpu.dylib"
    with library.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        symbols = sorted({found[1].decode() for found in _DEFINED.finditer(data)})
    by_name: dict[str, str] = {}
    done = subprocess.run(["c++filt"], input="\n".join(symbols), capture_output=True, text=True, check=True)
    for symbol, line in zip(symbols, done.stdout.splitlines(), strict=True):
        name = _name(line)
        if name.startswith("at::") and all(part.lstrip("~") in words for part in name.split("::")[2:] if part != "mps"):
            by_name[name] = symbol
    return by_name


def test_each_function_is_here_or_raises_with_its_name(declared: dict[str, str]) -> None:
    libraries = [str(torch_host_library()), str(torch_graphs_library())]
    done = subprocess.run(["nm", "-D", "--defined-only", *libraries], capture_output=True, text=True, check=True)
    here = names_of(line.split()[-1] for line in done.stdout.splitlines() if line.count(" ") > 1)
    missing = {name: symbol for name, symbol in declared.items() if name not in here}
    print(f"{len(declared) - len(missing)} of {len(declared)} functions are here")
    assert len(declared) > 250
    assert len(declared) - len(missing) >= 134, sorted(missing)
    assert {name for name, symbol in missing.items() if refusing_of_the_host([symbol]) == ""} == set()
