"""The Metal source of a family as a file of PyTorch's tree.

Files of `kernels/shared` that the family includes are inlined, without line markers and unused helpers. Elementwise
functors go through the tree's own elementwise kernels (c10/metal/indexing.h): each gets an operator() and its
REGISTER_ lines.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from ....kernels.runtime.shader import assembled, sources
from ...errors import ScaffoldError
from .unused import defined, without

_LINE_MARK = re.compile(r'^#line \d+ "[^"]*"\n', re.MULTILINE)
_HEADERS = re.compile(r"^(#include <[^>]+>|using namespace metal;)\n", re.MULTILINE)
_INCLUDE = re.compile(r'^#include "shared/(?P<name>\w+)\.metal"\n', re.MULTILINE)
# The lines that instantiate shared/elementwise.metal, one functor each.
_MACRO = re.compile(r"^(?P<kind>UNARY|BINARY)(?P<floating>_FLOATING)?\((?P<name>\w+)(?:, (?P<type>\w+))?\)\n?", re.M)
# shared/report.metal knows releases without a buffer for errors; the tree that a patch is for has one.
_REPORTING = re.compile(r"// Lets a kernel refuse.*?#ifdef REPORTS\n(?P<macros>.*?)#else\n.*?#endif\n", re.DOTALL)
_REPORTS = r"// REPORT_BUFFER(n) is a kernel's last buffer: for what only it sees, an index out of range.\n\g<macros>"
# What a file of `kernels/shared` says of itself, and mentions of files that PyTorch does not have.
_ABOUT_FILE = re.compile(r"(?:(?://.*\n)+(?=#include))?")
_OTHER_FILE = re.compile(r" \((?:shared|runtime)/\w+\.\w+\)")
_ELEMENTWISE = frozenset({"elementwise", "lanes", "strided"})
_FLOATING = ("float", "half", "bfloat")
_INTEGERS = ("long", "int", "short", "char", "uchar", "bool")
# A functor that has floating types alone takes integers as floats, as TensorIterator says.
_UNARY = """\
struct {name}_functor {{
  template <typename T>
  inline enable_if_t<is_floating_point_v<T>, T> operator()(const T x) {{
    return {name}::apply(x, nullptr);
  }}
  template <typename T>
  inline enable_if_t<is_integral_v<T>, float> operator()(const T x) {{
    return {name}::apply(static_cast<float>(x), nullptr);
  }}
}};
"""
_BINARY = """\
struct {name}_functor {{
  template <typename T>
  inline T operator()(const T a, const T b) {{
    return {name}::apply(a, b, nullptr);
  }}
}};
"""
_BINARY_FLOATING = """\
struct {name}_functor {{
  template <typename T>
  inline enable_if_t<is_floating_point_v<T>, T> operator()(const T a, const T b) {{
    return {name}::apply(a, b, nullptr);
  }}
  template <typename T>
  inline enable_if_t<is_integral_v<T>, float> operator()(const T a, const T b) {{
    return {name}::apply(static_cast<float>(a), static_cast<float>(b), nullptr);
  }}
}};
"""


@dataclass(frozen=True)
class ElementwiseFunctor:
    """A functor of one or two operands that the family instantiates for types."""

    name: str
    operands: int
    types: tuple[str, ...]

    @property
    def text(self) -> str:
        """The functor that the tree's kernels call, and the lines that instantiate them."""
        macro, functor = ("UNARY", _UNARY) if self.operands == 1 else ("BINARY", _BINARY_FLOATING)
        pairs = [(type_, type_) for type_ in self.types]
        if set(self.types) == set(_FLOATING):
            pairs += [(type_, "float") for type_ in _INTEGERS]
        elif self.operands == 2:
            functor = _BINARY
        lines = [f"REGISTER_{macro}_OP({self.name}, {read}, {written});" for read, written in pairs]
        return functor.format(name=self.name) + "\n" + "\n".join(lines) + "\n"


def elementwise_functors(path: Path) -> tuple[ElementwiseFunctor, ...]:
    """The functors of a family that is nothing but elementwise functors without numbers; else none."""
    text = path.read_text("utf-8")
    types: dict[tuple[str, int], list[str]] = {}
    for line in _MACRO.finditer(text):
        key = (line["name"], 1 if line["kind"] == "UNARY" else 2)
        types.setdefault(key, []).extend(_FLOATING if line["floating"] else [line["type"]])
    takes_numbers = re.search(r"\bp\[\d\]", text) is not None
    if takes_numbers or "kernel void" in text or re.search(r"_PAIR\(", text):
        return ()
    return tuple(ElementwiseFunctor(name, operands, tuple(given)) for (name, operands), given in types.items())


def moved(path: Path) -> str:
    """The text of a family's Metal file in PyTorch's tree.

    Raises ScaffoldError for a file that cannot be read.
    """
    try:
        functors = elementwise_functors(path)
        return _elementwise(path, functors) if functors else _whole(path)
    except OSError as error:
        raise ScaffoldError(f"cannot read {error.filename or path}: {error.strerror}") from None


def _whole(path: Path) -> str:
    """A family with its own kernels: its Metal source with everything that it includes, in one file."""
    inlined = [file.read_text("utf-8") for file in sources(path)[1:]]
    text = _REPORTING.sub(_REPORTS, _LINE_MARK.sub("", assembled(path)).replace("#define REPORTS\n", ""))
    text = without(_OTHER_FILE.sub("", text), [name for file in inlined for name in defined(file)])
    for file in inlined:
        about, names = "".join(_ABOUT_FILE.findall(file)[:1]), defined(file)
        text = text.replace(about, f"{about}\n" if not names or names.keys() & defined(text).keys() else "", 1)
    headers = [line for line in dict.fromkeys(_HEADERS.findall(text)) if line != "using namespace metal;"]
    return _without_blank_runs("\n".join([*sorted(headers), "using namespace metal;", "", _HEADERS.sub("", text)]))


def _elementwise(path: Path, functors: tuple[ElementwiseFunctor, ...]) -> str:
    text = path.read_text("utf-8")
    folder = path.parents[1] / "shared"
    shared = [folder / f"{name}.metal" for name in _INCLUDE.findall(text) if name not in _ELEMENTWISE]
    bodies = [_HEADERS.sub("", file.read_text("utf-8")) for file in shared]
    own = _MACRO.sub("", _INCLUDE.sub("", text)).replace("constant float*", "thread const float*")
    head = "#include <c10/metal/indexing.h>\n#include <metal_stdlib>\nusing namespace metal;\n"
    return _without_blank_runs("\n".join([head, *bodies, own, *(functor.text for functor in functors)]))


def _without_blank_runs(text: str) -> str:
    return re.sub(r"\n{3,}", "\n\n", text).strip("\n") + "\n"
