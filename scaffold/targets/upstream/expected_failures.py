"""Removes an operator's entries from PyTorch's lists of expected failures on mps (common_mps.py)."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable, Iterator, Mapping

# A new kernel ends only these failures; entries in other lists (gradients, undefined values) need a review.
_LIST = "UNIMPLEMENTED"
_COMPLEX = "SUPPORTED_COMPLEX_OPS"


def without_entries(text: str, opinfos: Iterable[str]) -> str:
    """The text of common_mps.py without the entries of these OpInfos in the lists of unimplemented operators."""
    return narrowed(text, {name: frozenset() for name in opinfos})


def narrowed(text: str, still_failing: Mapping[str, Collection[str]]) -> str:
    """The text with the entries of OpInfos reduced to some dtypes, or removed if there are none.

    `still_failing`: by the OpInfo's name, the dtypes in which it is still expected to fail.
    """
    failing = {name: frozenset(dtypes) for name, dtypes in still_failing.items()}
    lines = text.splitlines(keepends=True)
    for key, start, end in sorted(_entries(ast.parse(text), failing), key=lambda entry: entry[1], reverse=True):
        indent = lines[start - 1][: len(lines[start - 1]) - len(lines[start - 1].lstrip())]
        lines[start - 1 : end] = _entry(key, failing[key], indent)
    return "".join(lines)


def with_complex(text: str, opinfos: Iterable[str]) -> str:
    """The text with OpInfos added to the set of those with complex dtypes, in alphabetical order."""
    lines = text.splitlines(keepends=True)
    for name in sorted(opinfos):
        for node in ast.walk(ast.parse("".join(lines))):
            if isinstance(node, ast.Assign) and _is_named(node.targets, _COMPLEX) and isinstance(node.value, ast.Set):
                constants = {item.value: item for item in node.value.elts if isinstance(item, ast.Constant)}
                names = {value: item for value, item in constants.items() if isinstance(value, str)}
                if name in names:
                    continue
                behind = next((item.lineno for value, item in names.items() if value > name), None)
                indent = " " * next((item.col_offset for item in names.values()), 4)
                lines.insert((behind or node.value.end_lineno or 1) - 1, f'{indent}"{name}",\n')
    return "".join(lines)


def _entry(key: str, dtypes: frozenset[str], indent: str) -> list[str]:
    if not dtypes:
        return []
    names = [f"torch.{dtype}" for dtype in sorted(dtypes)]
    line = f'{indent}"{key}": [{", ".join(names)}],\n'
    if len(line) <= 89:
        return [line]
    return [f'{indent}"{key}": [\n', *(f"{indent}    {name},\n" for name in names), f"{indent}],\n"]


def _entries(tree: ast.Module, names: Collection[str]) -> Iterator[tuple[str, int, int]]:
    """The key and the first and last line of each entry for one of these names."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Assign | ast.AnnAssign) or node.value is None:
            continue
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        if not any(isinstance(target, ast.Name) and _LIST in target.id for target in targets):
            continue
        for table in (inner for inner in ast.walk(node.value) if isinstance(inner, ast.Dict)):
            for key, value in zip(table.keys, table.values, strict=True):
                if isinstance(key, ast.Constant) and isinstance(key.value, str) and key.value in names:
                    yield key.value, key.lineno, value.end_lineno or value.lineno


def _is_named(targets: Iterable[ast.expr], name: str) -> bool:
    return any(isinstance(target, ast.Name) and target.id == name for target in targets)
