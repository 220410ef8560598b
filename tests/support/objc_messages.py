"""Sends Objective-C messages from Python, with the simulated frameworks alone: no simulated device.

A message goes through a function that passes whole numbers and reals in two lists, which is what the calling
conventions of x86-64 and arm64 make of any mix of the two.
"""

from __future__ import annotations

import ctypes
import functools
import struct
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from mpsmith.simulator.objc import compiler
from mpsmith.simulator.objc.graphs import loaded as load_graphs
from mpsmith.simulator.objc.host_libraries import IMAGE, frameworks_library, linked

_WHOLE, _REALS = 18, 6
_SENDER = """\
#include <exception>
#include <objc/objc.h>
#include <string>
extern "C" void objc_msgSend(void);
extern "C" const char* send_message(id receiver, const char* selector, const long* n, const double* r, id* result) {
  using Send = id (*)(id, SEL, long, long, long, long, long, long, long, long, long, long, long, long, long, long, long,
                      long, long, long, double, double, double, double, double, double);
  static std::string problem;
  try {
    *result = ((Send)objc_msgSend)(receiver, sel_registerName(selector), n[0], n[1], n[2], n[3], n[4], n[5], n[6], n[7],
                                   n[8], n[9], n[10], n[11], n[12], n[13], n[14], n[15], n[16], n[17], r[0], r[1], r[2],
                                   r[3], r[4], r[5]);
    return nullptr;
  } catch (const std::exception& error) {
    problem = error.what();
    return problem.c_str();
  }
}
"""


class MessageError(Exception):
    """What a method raised."""


@dataclass(frozen=True)
class Single:
    """A float, where Python's own numbers are doubles."""

    value: float


@dataclass(frozen=True)
class Ref:
    """A reference to an object."""

    address: int


Argument = None | bool | int | float | Single | Ref | Sequence[int] | Sequence[Ref]


@functools.cache
def _library() -> ctypes.CDLL:
    folder = Path(tempfile.mkdtemp(prefix="mpsmith-messages-"))
    source = folder / "send.cpp"
    source.write_text(_SENDER)
    host = compiler.host_compiler(torch=False)
    objects = [folder / "send.o", folder / "image.o"]
    for path, made in zip((source, IMAGE), objects, strict=True):
        host.compile(compiler.Unit(path), made)
    library = folder / "send.so"
    assert compiler.link(objects, library, linked(frameworks_library())) == []
    return ctypes.CDLL(str(library))


@functools.cache
def frameworks() -> ctypes.CDLL:
    """The runtime, Foundation and Metal, with the stand-in for MPSGraph loaded beside them."""
    import torch  # noqa: F401  # the stand-in links with it

    loaded = ctypes.CDLL(str(frameworks_library()), mode=ctypes.RTLD_GLOBAL)
    load_graphs()
    loaded.objc_getClass.restype = ctypes.c_void_p
    loaded.MTLCreateSystemDefaultDevice.restype = ctypes.c_void_p
    return loaded


def class_named(name: str) -> Ref:
    """A class. Raises LookupError if there is none."""
    address = frameworks().objc_getClass(name.encode())
    if not address:
        raise LookupError(name)
    return Ref(address)


def responds(receiver: Ref, selector: str) -> bool:
    """Whether an object, or a class, has the method."""
    return bool(send(receiver, "respondsToSelector:", _selector(selector)) & 1)


def _selector(name: str) -> Ref:
    loaded = frameworks()
    loaded.sel_registerName.restype = ctypes.c_void_p
    return Ref(loaded.sel_registerName(name.encode()))


def send(receiver: Ref, selector: str, *arguments: Argument) -> int:
    """Send a message; returns the result's bits, an address or a number.

    Lists of numbers or objects become arrays. Raises MessageError with what the method raised.
    """
    frameworks()
    whole: list[int] = []
    reals: list[float] = []
    for argument in arguments:
        if isinstance(argument, Single):
            reals.append(struct.unpack("<d", struct.pack("<ff", argument.value, 0))[0])
        elif isinstance(argument, float):
            reals.append(argument)
        else:
            whole.append(_word(argument))
    numbers = (ctypes.c_long * _WHOLE)(*whole)
    real_numbers = (ctypes.c_double * _REALS)(*reals)
    result = ctypes.c_void_p()
    function = _library().send_message
    function.restype = ctypes.c_char_p
    address = ctypes.c_void_p(receiver.address)
    problem = function(address, selector.encode(), numbers, real_numbers, ctypes.byref(result))
    if problem is not None:
        raise MessageError(problem.decode())
    return result.value or 0


def _word(argument: Argument) -> int:
    if argument is None:
        return 0
    if isinstance(argument, Ref):
        return argument.address
    if isinstance(argument, int):
        return int(argument)
    assert isinstance(argument, Sequence)
    return array(argument).address


def made(name: str, selector: str, *arguments: Argument) -> Ref:
    """A new object of a class, from an initializer."""
    return Ref(send(Ref(send(class_named(name), "alloc")), selector, *arguments))


def array(items: Sequence[int] | Sequence[Ref]) -> Ref:
    """An NSArray of numbers or objects."""
    objects = [i if isinstance(i, Ref) else Ref(send(class_named("NSNumber"), "numberWithLongLong:", i)) for i in items]
    words = (ctypes.c_void_p * max(len(objects), 1))(*(item.address for item in objects))
    here = Ref(ctypes.addressof(words))
    return Ref(send(class_named("NSArray"), "arrayWithObjects:count:", here, len(objects)))


def items_of(of: Ref) -> list[Ref]:
    """The objects in an NSArray."""
    return [Ref(send(of, "objectAtIndex:", index)) for index in range(send(of, "count"))]


def numbers_of(of: Ref) -> list[int]:
    """The numbers in an NSArray."""
    return [ctypes.c_long(send(item, "longLongValue")).value for item in items_of(of)]


def dictionary(pairs: Sequence[tuple[Ref, Ref]]) -> Ref:
    """An NSDictionary of keys and their objects."""
    made_one = Ref(send(class_named("NSMutableDictionary"), "dictionary"))
    for key, item in pairs:
        send(made_one, "setObject:forKey:", item, key)
    return made_one
