"""Stand-ins for functions that only a tree's closed files define: each raises, and the rest of a file runs."""

from __future__ import annotations

import re
from collections.abc import Sequence

_ATEN = re.compile(r"_ZNK?(?=2at)")
_LENGTH = re.compile(r"\d+")
_CODE = """\
#include <cxxabi.h>

#include <cstdlib>
#include <stdexcept>
#include <string>

[[noreturn]] static void refuse(const char* symbol) {{
  char* name = abi::__cxa_demangle(symbol, nullptr, nullptr, nullptr);
  const std::string said = name != nullptr ? name : symbol;
  std::free(name);
  throw std::runtime_error(said + " is defined by a file that needs what is Apple's and closed");
}}
{functions}
"""
_REFUSING = """\
extern "C" void closed_{number}() __asm__("{symbol}");
extern "C" void closed_{number}() {{ refuse("{symbol}"); }}
"""


def refusing(symbols: Sequence[str]) -> str:
    """C++ that defines those of the undefined symbols that are functions of ATen's; empty where none is."""
    functions = [symbol for symbol in symbols if _is_function(symbol)]
    texts = [_REFUSING.format(number=number, symbol=symbol) for number, symbol in enumerate(functions)]
    return _CODE.format(functions="".join(texts)) if texts else ""


def _is_function(symbol: str) -> bool:
    """Whether it is one of ATen's: behind the name come the types of its arguments, and a variable has none."""
    at = _ATEN.match(symbol)
    if at is None:
        return False
    place = at.end()
    while name := _LENGTH.match(symbol, place):
        place = name.end() + int(name[0])
    return symbol[place:] != "E"
