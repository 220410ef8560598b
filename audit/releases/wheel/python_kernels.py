"""Kernels that torch registers for MPS from Python, which neither the yaml nor the binary shows.

Calls such as `torch.library.Library("aten", "IMPL", "MPS").impl("linalg_lu_solve.out", function)` are found in the
sources by their syntax. Such a kernel calls other operators, but the dispatcher treats it like any kernel.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping

KEY = "MPS"

_WORDS = (b'"MPS"', b"'MPS'")


def may_register(source: bytes) -> bool:
    """Whether a source may register a kernel: a quick check before parsing, which has false positives only."""
    return b".impl(" in source and any(word in source for word in _WORDS)


def read_python_kernels(sources: Mapping[str, bytes]) -> tuple[str, ...]:
    """The overloads of aten (without namespace) that these Python sources register a kernel for under MPS, sorted.

    Sources that cannot be parsed register nothing: Python could not import them either.
    """
    overloads: set[str] = set()
    for source in sources.values():
        if may_register(source):
            try:
                overloads.update(_registered(ast.parse(source)))
            except (SyntaxError, ValueError, RecursionError):
                continue
    return tuple(sorted(overloads))


def _registered(tree: ast.Module) -> Iterator[str]:
    libraries = set(_mps_libraries(tree))
    for node in ast.walk(tree):
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "impl"):
            continue
        texts = [argument.value for argument in node.args if isinstance(argument, ast.Constant)]
        for_mps = ast.unparse(node.func.value) in libraries or KEY in texts[1:]
        if for_mps and texts and isinstance(texts[0], str) and "::" not in texts[0].removeprefix("aten::"):
            yield texts[0].removeprefix("aten::")


def _mps_libraries(tree: ast.Module) -> Iterable[str]:
    """The names that are bound to a library for the MPS key."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call):
            called = ast.unparse(node.value.func)
            texts = [argument.value for argument in node.value.args if isinstance(argument, ast.Constant)]
            if called.rpartition(".")[2].endswith("Library") and KEY in texts and "aten" in texts:
                yield from (ast.unparse(target) for target in node.targets)
