"""Changes entries in the text of a registry file and keeps every other character.

YAML libraries that keep comments rewrite the whole document with their own quotes, line breaks and indentation. Here
the parser gives the positions, and only the lines of changed fields are replaced. Comments are never lost: the comment
of a removed line moves to a separate line.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias

import yaml

from .parsing import Plain, compose, plain

_DUMPER = yaml.CSafeDumper if yaml.__with_libyaml__ else yaml.SafeDumper
_WIDTH = 110
_ONE_LINE = 1_000_000
_LINE_BREAK = re.compile("\r\n|[\n\r\x85\u2028\u2029]")
_ONE_LINE_ENTRY = re.compile(r"\S+: *\{.*\}\s*(#.*)?$")
_COMMENT = re.compile(r"(?:(?<=\s)|^)#[^\r\n]*", re.MULTILINE)
_Pair: TypeAlias = tuple[yaml.Node, yaml.Node]


@dataclass(frozen=True)
class _Edit:
    """`text[start:end]` becomes `replacement`."""

    start: int
    end: int
    replacement: str


def with_entries(text: str, entries: Mapping[str, dict[str, Plain]]) -> str:
    """The text of a file in which each operator of `entries` has exactly these fields; other entries do not change.

    New entries go where the order of names puts them, new fields where the order of the given mapping does.
    The text must parse (`registry.parsing.parse` finds no problem in it). A text that changes ends with a line break.
    """
    newline = "\r\n" if "\r\n" in text else "\n"
    ended = text if not text or text.endswith("\n") else text + newline
    root = compose(ended)
    pairs: list[_Pair] = list(root.value) if isinstance(root, yaml.MappingNode) else []
    present = {key.value for key, _ in pairs}
    edits: list[_Edit] = []
    for pair in pairs:
        if pair[0].value in entries:
            edits += _of_pair(ended, pair, entries[pair[0].value])
    edits += _new_entries(ended, pairs, {name: fields for name, fields in entries.items() if name not in present})
    return _applied(ended, edits, newline) if edits else text


def _applied(text: str, edits: list[_Edit], newline: str) -> str:
    pieces: list[str] = []
    position = 0
    for edit in sorted(edits, key=lambda edit: (edit.start, edit.end)):
        pieces += (text[position : edit.start], edit.replacement.replace("\n", newline))
        position = edit.end
    return "".join([*pieces, text[position:]])


def _of_pair(text: str, pair: _Pair, new: Plain) -> list[_Edit]:
    """The edits that set the key of `pair` to the value `new`."""
    key, value = pair
    if plain(value) == new:
        return []
    if isinstance(value, yaml.MappingNode) and not value.flow_style and isinstance(new, dict) and new:
        return _of_mapping(text, key, value, new)
    in_line = _written("", new).removeprefix("'':")
    if _is_inline(pair) and "\n" not in in_line:
        start, end = value.start_mark.index, value.end_mark.index
        return [_Edit(start, end, in_line.lstrip() if start < end else in_line)]
    replacement = _instead_of(text, pair, _written(key.value, new) + "\n")
    if key.start_mark.column:
        return [replacement]
    lines = _with_blank_lines(text, replacement.start, replacement.end, replacement.replacement)
    return [_Edit(replacement.start, replacement.end, lines)]


def _of_mapping(text: str, parent: yaml.Node, mapping: yaml.MappingNode, new: dict[str, Plain]) -> list[_Edit]:
    """The edits after which a block mapping, the value of `parent`, has exactly the keys and values of `new`."""
    pairs = {key.value: (key, value) for key, value in mapping.value}
    edits = [
        edit
        for name, pair in pairs.items()
        for edit in (_of_pair(text, pair, new[name]) if name in new else [_instead_of(text, pair, "")])
    ]
    indent = mapping.value[0][0].start_mark.column
    before: _Pair | None = None
    added: dict[int, str] = {}
    for name, value in new.items():
        if name in pairs:
            before = pairs[name]
            continue
        position = _line_end(text, _content_end(text, before) if before else parent.end_mark.index)
        added[position] = added.get(position, "") + _indented(_written(name, value) + "\n", indent)
    return edits + [_Edit(position, position, lines) for position, lines in added.items()]


def _new_entries(text: str, pairs: list[_Pair], entries: dict[str, dict[str, Plain]]) -> list[_Edit]:
    """The edits that insert whole entries: a blank line around each block, none between entries of one line."""
    added: dict[int, str] = {}
    for name in sorted(entries):
        following = next((key for key, _ in pairs if key.value > name), None)
        position = len(text) if following is None else _above_comments(text, following.start_mark.index)
        entry, before = _written(name, entries[name]) + "\n", added.get(position, "")
        separator = "\n" if before and (_is_block(entry) or _is_block(before.rpartition("\n\n")[2])) else ""
        added[position] = before + separator + entry
    return [_Edit(at, at, _with_blank_lines(text, at, at, entries)) for at, entries in added.items()]


def _with_blank_lines(text: str, start: int, end: int, entries: str) -> str:
    """Whole entries that replace `text[start:end]`, with the blank lines that separate them from their neighbours."""
    lines = entries.splitlines()
    above, below = text[:start].splitlines(), text[end:].splitlines()
    if above and above[-1] and not (_is_one_line_entry(above[-1]) and _is_one_line_entry(lines[0])):
        entries = "\n" + entries
    if below and below[0] and not (_is_one_line_entry(below[0]) and _is_one_line_entry(lines[-1])):
        entries += "\n"
    return entries


def _is_one_line_entry(line: str) -> bool:
    return _ONE_LINE_ENTRY.match(line) is not None


def _is_block(entry: str) -> bool:
    return not all(map(_is_one_line_entry, entry.splitlines()))


def _instead_of(text: str, pair: _Pair, written: str) -> _Edit:
    """Replace all lines of a field by the lines `written`, and move its comments above them."""
    key = pair[0]
    start = key.start_mark.index - key.start_mark.column
    end = _line_end(text, _content_end(text, pair))
    comments = "".join(f"{comment}\n" for comment in _comments(text, start, end, pair))
    return _Edit(start, end, _indented(comments + written, key.start_mark.column))


def _is_inline(pair: _Pair) -> bool:
    """Whether the value is on the line of its key, where another value can replace it."""
    key, value = pair
    in_line = value.flow_style if isinstance(value, yaml.CollectionNode) else not _is_block_scalar(value)
    return bool(in_line) and key.start_mark.line == value.end_mark.line


def _comments(text: str, start: int, end: int, pair: _Pair) -> Iterator[str]:
    """The comments in `text[start:end]`, which holds only `pair`: those that `#` begins outside of scalars."""
    position = start
    for scalar in (*_scalars(pair[0]), *_scalars(pair[1])):
        yield from _COMMENT.findall(text[position : scalar.start_mark.index])
        if _is_block_scalar(scalar):
            first_line = scalar.start_mark.index, _line_end(text, scalar.start_mark.index)
            yield from _COMMENT.findall(text[slice(*first_line)])
        position = scalar.end_mark.index
    yield from _COMMENT.findall(text[position:end])


def _scalars(node: yaml.Node) -> Iterator[yaml.ScalarNode]:
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            yield from _scalars(key)
            yield from _scalars(value)
    elif isinstance(node, yaml.SequenceNode):
        for item in node.value:
            yield from _scalars(item)
    elif isinstance(node, yaml.ScalarNode):
        yield node


def _content_end(text: str, pair: _Pair) -> int:
    """The position of the last character of a value; in libyaml a block ends where the next token starts."""
    key, value = pair
    while isinstance(value, yaml.CollectionNode) and not value.flow_style:
        last = value.value[-1]
        key, value = last if isinstance(value, yaml.MappingNode) else (last, last)
    end: int = max(key.end_mark.index, value.end_mark.index)
    return len(text[:end].rstrip()) if _is_block_scalar(value) else end


def _is_block_scalar(node: yaml.Node) -> bool:
    return isinstance(node, yaml.ScalarNode) and node.style in ("|", ">")


def _above_comments(text: str, index: int) -> int:
    """The start of the comment lines directly above the line at `index`; they belong to that line."""
    lines = text[:index].splitlines(keepends=True)
    while lines and lines[-1].startswith("#"):
        index -= len(lines.pop())
    return index


def _line_end(text: str, index: int) -> int:
    line_break = _LINE_BREAK.search(text, index)
    return line_break.end() if line_break else len(text)


def _indented(lines: str, indent: int) -> str:
    return "".join(" " * indent + line if line.strip() else line for line in lines.splitlines(keepends=True))


def _written(key: str, value: Plain) -> str:
    """The text of a key and its value in the registry's style, without the last line break.

    A list, a measurement and an entry with only measurements take one line; other mappings are blocks.
    """
    root = yaml.MappingNode("tag:yaml.org,2002:map", [(_node(key), _node(value))], flow_style=False)
    width = _ONE_LINE if "verdict" in str(value) else _WIDTH
    written: str = yaml.serialize(root, Dumper=_DUMPER, allow_unicode=True, width=width)
    return written.removesuffix("\n")


def _node(data: Plain) -> yaml.Node:
    if isinstance(data, dict):
        pairs = [(_node(key), _node(value)) for key, value in data.items()]
        in_one_line = "verdict" in data or list(data) == ["measured"]
        return yaml.MappingNode("tag:yaml.org,2002:map", pairs, flow_style=in_one_line)
    if isinstance(data, list):
        return yaml.SequenceNode("tag:yaml.org,2002:seq", [_node(item) for item in data], flow_style=True)
    if data is None:
        return yaml.ScalarNode("tag:yaml.org,2002:null", "null")
    if data.isascii() and data.isdigit() and not data.startswith("0"):
        return yaml.ScalarNode("tag:yaml.org,2002:int", data)
    # Text stays text for every YAML reader: by the tag the dumper knows to quote what looks like a number or a date.
    # Line breaks at the end of a literal block would run into the blank line after the entry, so they are quoted.
    style = None if "\n" not in data else '"' if data.endswith("\n\n") or data == "\n" else "|"
    return yaml.ScalarNode("tag:yaml.org,2002:str", data, style=style)
