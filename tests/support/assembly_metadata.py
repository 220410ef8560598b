"""The metadata of a module out of its assembly: what reading its bitcode is compared with."""

from __future__ import annotations

import re

from mpsmith.simulator.air.llvm_text import split_list
from mpsmith.simulator.air.metadata import Metadata, NodeReference, Value

_NODE = re.compile(r"^!(\d+) = (?:distinct )?!\{(.*)\}$", re.MULTILINE)
_LIST = re.compile(r"^!([a-zA-Z_.][\w.]*) = !\{(.*)\}$", re.MULTILINE)
_INTEGER = re.compile(r"i\d+ (-?\d+)")
_REFERENCE = re.compile(r"!(\d+)")


def _value(word: str) -> Value:
    if word.startswith('!"'):
        return word[2:-1]
    if integer := _INTEGER.fullmatch(word):
        return int(integer[1])
    if reference := _REFERENCE.fullmatch(word):
        return NodeReference(int(reference[1]))
    return None


def metadata_of_text(assembly: str) -> Metadata:
    """The metadata at the end of a module's assembly."""
    nodes = {int(m[1]): tuple(_value(word) for word in split_list(m[2])) for m in _NODE.finditer(assembly)}
    lists = {m[1]: tuple(int(word[1:]) for word in split_list(m[2])) for m in _LIST.finditer(assembly)}
    return Metadata(nodes, lists)
