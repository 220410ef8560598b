"""Reads a registry file into entries with positions, and finds everything that is malformed in it.

Every scalar is read as text (`torch: 2.10` is "2.10", not a number); only an empty, `null` or `~` value means absent.
Anchors, aliases, tags and flow style at the top are refused: they cannot be edited in place.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeAlias

import yaml

from .problems import Problem

# libyaml where PyYAML was built with it: about ten times as fast.
LOADER = yaml.CBaseLoader if yaml.__with_libyaml__ else yaml.BaseLoader

Plain: TypeAlias = "str | list[Plain] | dict[str, Plain] | None"

# How deep values may be nested. An entry has four levels; libyaml and PyYAML recurse once a level, so a few thousand
# levels would crash the process.
DEEPEST = 50

_ABSENT = ("", "~", "null", "Null", "NULL")
_DEFAULT_TAGS = frozenset(f"tag:yaml.org,2002:{kind}" for kind in ("str", "map", "seq"))


@dataclass(frozen=True)
class Block:
    """One entry of a file: its operator, its plain data, and the YAML nodes of its key and value."""

    path: Path
    operator: str
    key: yaml.ScalarNode
    value: yaml.Node
    data: Plain

    def problem(self, location: tuple[int | str, ...], message: str, *, at_key: bool = False) -> Problem:
        """A problem with the value at `location` (keys and indices within the entry), or with its key."""
        key, value = self._nodes_at(location)
        mark = (key if at_key else value).start_mark
        return Problem(self.path, mark.line + 1, mark.column + 1, f"{self.operator}: {message}")

    def _nodes_at(self, location: tuple[int | str, ...]) -> tuple[yaml.Node, yaml.Node]:
        key: yaml.Node = self.key
        value = self.value
        for step in location:
            if isinstance(value, yaml.MappingNode):
                pairs = {name.value: (name, child) for name, child in value.value}
                if step not in pairs:
                    break
                key, value = pairs[step]
            elif isinstance(value, yaml.SequenceNode) and isinstance(step, int) and step < len(value.value):
                key = value = value.value[step]
            else:
                break
        return key, value


def read_text(path: Path) -> str:
    """The text of a registry file, its line ends untouched.

    Raises OSError when it cannot be read and UnicodeDecodeError when it is not UTF-8.
    """
    return path.read_bytes().decode("utf-8")


def parse(text: str, path: Path) -> tuple[list[Block], list[Problem]]:
    """The entries of one file and everything that is malformed in it.

    After a syntax error the entries are parsed one by one, so that a second error in the file is found as well.
    """
    try:
        root = compose(text)
    except yaml.YAMLError as error:
        return [], _syntax_problems(text, path) or [_syntax_problem(error, text, path)]
    if root is None or _is_absent(root):
        return [], []
    if not isinstance(root, yaml.MappingNode) or root.flow_style:
        message = "a registry file is a mapping in block style, an entry for each operator, such as 'aten::mode:'"
        return [], [Problem(path, root.start_mark.line + 1, root.start_mark.column + 1, message)]
    reader = _Reader(path)
    blocks = []
    for key, value in reader.pairs(root):
        blocks.append(Block(path, key.value, key, value, reader.plain(value)))
    return blocks, reader.problems


@lru_cache(maxsize=64)  # an edit reads each file several times; nobody changes a node
def compose(text: str) -> yaml.Node | None:
    """The document's tree of nodes with their places; None for an empty one. Raises yaml.YAMLError.

    A text without a line break at its end is read as if it had one, so that an edit that adds it changes no value.
    """
    ended = text if text.endswith("\n") else text + "\n"
    _refuse_depth(ended)
    node: yaml.Node | None = yaml.compose(ended, Loader=LOADER)
    return node


def _refuse_depth(text: str) -> None:
    """Raise yaml.MarkedYAMLError if values are nested too deep. Reading events needs no recursion, unlike nodes."""
    depth = 0
    try:
        for event in yaml.parse(text, Loader=LOADER):
            if isinstance(event, yaml.CollectionStartEvent):
                depth += 1
                if depth > DEEPEST:
                    raise _too_deep(event.start_mark)
            elif isinstance(event, yaml.CollectionEndEvent):
                depth -= 1
    except yaml.MarkedYAMLError as error:
        # libyaml has a limit of its own since PyYAML 6.0.4, and reads ahead: it may raise before the first event.
        if "nesting depth" in (error.problem or ""):
            raise _too_deep(error.problem_mark) from error
        raise


def _too_deep(place: Any) -> yaml.MarkedYAMLError:
    """The error about too deeply nested values. `place`: a Mark of PyYAML or of libyaml."""
    message = f"values are nested more than {DEEPEST} deep; an entry needs four levels"
    return yaml.MarkedYAMLError(problem=message, problem_mark=place)


def plain(node: yaml.Node) -> Plain:
    """A node as plain data, without the malformed parts."""
    return _Reader(Path()).plain(node)


class _Reader:
    """Turns nodes into plain data and notes what is malformed."""

    def __init__(self, path: Path):
        self.path = path
        self.problems: list[Problem] = []
        self._seen: set[int] = set()

    def plain(self, node: yaml.Node) -> Plain:
        if id(node) in self._seen:
            self._note(node, "anchors and aliases are not used in the registry: write the value out")
            return None
        self._seen.add(id(node))
        if node.tag not in _DEFAULT_TAGS:
            self._note(node, f"the tag {node.tag} is not used in the registry: write the plain value")
        if isinstance(node, yaml.MappingNode):
            return {key.value: self.plain(value) for key, value in self.pairs(node)}
        if isinstance(node, yaml.SequenceNode):
            return [self.plain(item) for item in node.value]
        return None if _is_absent(node) else str(node.value)

    def pairs(self, mapping: yaml.MappingNode) -> Iterator[tuple[yaml.ScalarNode, yaml.Node]]:
        first: dict[str, yaml.Node] = {}
        for key, value in mapping.value:
            if not isinstance(key, yaml.ScalarNode):
                self._note(key, "a key must be plain text")
            elif key.value in first:
                earlier = first[key.value].start_mark.line + 1
                self._note(key, f"the key '{key.value}' occurs twice; it is first on line {earlier}")
            else:
                first[key.value] = key
                yield key, value

    def _note(self, node: yaml.Node, message: str) -> None:
        mark = node.start_mark
        self.problems.append(Problem(self.path, mark.line + 1, mark.column + 1, message))


def _is_absent(node: yaml.Node) -> bool:
    return isinstance(node, yaml.ScalarNode) and not node.style and node.value in _ABSENT


_TOP_LEVEL = re.compile(r"^[^\s#]", re.MULTILINE)


def _syntax_problems(text: str, path: Path) -> list[Problem]:
    """What is malformed in each entry of a file that does not parse as a whole."""
    starts = [match.start() for match in _TOP_LEVEL.finditer(text)]
    problems = []
    for start, end in zip(starts, [*starts[1:], len(text)], strict=True):
        lines_before = "\n" * text.count("\n", 0, start)  # so that the marks count the lines of the file
        try:
            compose(lines_before + text[start:end])
        except yaml.YAMLError as error:
            problems.append(_syntax_problem(error, lines_before + text[start:end], path))
    return problems


def _syntax_problem(error: yaml.YAMLError, text: str, path: Path) -> Problem:
    if isinstance(error, yaml.MarkedYAMLError):
        mark = error.problem_mark or error.context_mark
        if mark is not None:
            context = f" ({error.context})" if error.context else ""
            return Problem(path, mark.line + 1, mark.column + 1, f"malformed YAML: {error.problem}{context}")
    position = min(getattr(error, "position", 0) or 0, len(text))
    line = text.count("\n", 0, position) + 1
    return Problem(path, line, 1, f"malformed YAML: {getattr(error, 'reason', None) or error}")
