"""Stand-ins for functions of torch that nothing here defines: each raises with its name, and the rest runs."""

from __future__ import annotations

import re
from collections.abc import Sequence

_ATEN = re.compile(r"_ZNK?(?=2at)")
_OF_THE_HOST = re.compile(r"_ZNK?2at(?:6native)?3mps")
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
  throw std::runtime_error(said + " is not simulated: the torch file that defines it needs Apple's closed frameworks");
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


def refusing_of_the_host(symbols: Sequence[str]) -> str:
    """The same for what torch's headers for mps declare; what else is undefined is the extension's mistake."""
    return refusing([symbol for symbol in symbols if _OF_THE_HOST.match(symbol)])


def _is_function(symbol: str) -> bool:
    """Whether it is one of ATen's: behind the name come the types of its arguments, and a variable has none."""
    at = _ATEN.match(symbol)
    if at is None:
        return False
    place = at.end()
    while name := _LENGTH.match(symbol, place):
        place = name.end() + int(name[0])
    return symbol[place:] != "E"
