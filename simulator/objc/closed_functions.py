"""Stand-ins for functions of torch that nothing here defines: each raises an error with its name when it is called."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path

_ATEN = re.compile(r"_ZNK?(?=2at)")
_OF_THE_HOST = re.compile(r"_ZNK?2at(?:6native)?3mps")
_LENGTH = re.compile(r"\d+")
_CODE = """\
#include <cxxabi.h>

#include <cstdlib>
#include <stdexcept>
#include <string>

[[noreturn]] static void refuse(const char* symbol, const char* place) {{
  char* name = abi::__cxa_demangle(symbol, nullptr, nullptr, nullptr);
  const std::string said = name != nullptr ? name : symbol;
  std::free(name);
  const std::string why = " is not simulated: the torch file that defines it needs Apple's closed frameworks";
  throw std::runtime_error(said + why + place);
}}
{functions}
"""
_REFUSING = """\
extern "C" void closed_{number}() __asm__("{symbol}");
extern "C" void closed_{number}() {{ refuse("{symbol}", {place}); }}
"""


def refusing(symbols: Sequence[str], sources: Sequence[Path] = ()) -> str:
    """C++ that defines those undefined symbols that are functions of ATen; empty if there are none.

    A message names the first line of the `sources` that uses the function.
    """
    named = {symbol: name for symbol in symbols if (name := _name(symbol))}
    texts = [
        _REFUSING.format(number=number, symbol=symbol, place=json.dumps(_place(name, sources)))
        for number, (symbol, name) in enumerate(named.items())
    ]
    return _CODE.format(functions="".join(texts)) if texts else ""


def refusing_of_the_host(symbols: Sequence[str], sources: Sequence[Path] = ()) -> str:
    """The same, only for functions in torch's headers for mps: other undefined symbols are the extension's mistake."""
    return refusing([symbol for symbol in symbols if _OF_THE_HOST.match(symbol)], sources)


def _name(symbol: str) -> str:
    """The last part of a symbol's name if it is a function of ATen, else "": a variable's symbol has no arguments."""
    at = _ATEN.match(symbol)
    place, name = at.end() if at else len(symbol), ""
    while length := _LENGTH.match(symbol, place):
        place = length.end() + int(length[0])
        name = symbol[length.end() : place]
    return "" if symbol[place:] == "E" else name


def _place(name: str, sources: Sequence[Path]) -> str:
    """The first use of the name in the files, as a part of a message."""
    used = re.compile(rf"^(?!\s*(?://|#)).*\b{re.escape(name)}\b", re.MULTILINE)
    for path in sources:
        if match := used.search(text := path.read_text("utf-8", "replace")):
            return f" (used at {path}:{text.count(chr(10), 0, match.end()) + 1})"
    return ""
