"""Edits in place: whatever a person wrote stays, character by character, but for the fields that change."""

from collections import Counter
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from mpsmith.registry.edits import with_entries
from mpsmith.registry.parsing import Plain, parse


def data_in(text: str) -> dict[str, Plain]:
    blocks, problems = parse(text, Path("m.yaml"))
    assert problems == []
    return {block.operator: block.data for block in blocks}


def test_a_value_is_replaced_between_its_neighbours() -> None:
    text = "aten::mode:   # odd\n    owner:     'a'   # spacing\n    issue: 7"
    expected = "aten::mode:   # odd\n    owner:     b   # spacing\n    issue: 7\n"
    assert with_entries(text, {"aten::mode": {"owner": "b", "issue": "7"}}) == expected


def test_a_list_is_replaced_in_its_line() -> None:
    text = "aten::mode:\n  d:\n    wrong: [int8,int16]  # known\n    passed: [bool]\n"
    expected = "aten::mode:\n  d:\n    wrong: [int8, int64]  # known\n    passed: [bool]\n"
    assert with_entries(text, {"aten::mode": {"d": {"wrong": ["int8", "int64"], "passed": ["bool"]}}}) == expected


def test_keeps_comments_of_removed_lines() -> None:
    text = (
        "aten::mode:\n"
        "  d:\n"
        "    wrong: [int8,  # first\n"
        "            # between\n"
        "            '# no comment', a#b]  # last\n"
        "    notes: |  # head\n"
        "      # text\n"
        "    # after\n"
        "    gone: x  # with it\n"
        "  owner: a\n"
    )
    expected = (
        "aten::mode:\n"
        "  d:\n"
        "    # first\n"
        "    # between\n"
        "    # last\n"
        "    wrong: [bool]\n"
        "    # head\n"
        "    notes: short\n"
        "    # after\n"
        "    # with it\n"
        "  owner: a\n"
    )
    assert with_entries(text, {"aten::mode": {"d": {"wrong": ["bool"], "notes": "short"}, "owner": "a"}}) == expected


def test_a_mapping_in_flow_style_becomes_a_block() -> None:
    text = "aten::mode: {owner: a, issue: 7}  # short\naten::mul:\n  owner: b\n"
    expected = "# short\naten::mode:\n  owner: c\n\naten::mul:\n  owner: b\n"
    assert with_entries(text, {"aten::mode": {"owner": "c"}}) == expected


MEASURED: Plain = {"simulated": {"torch": "2.13.0", "verdict": "native", "reason": "a: b, " + "long " * 40}}
ONE_LINE = "{measured: {simulated: {torch: 2.13.0, verdict: native, reason: 'a: b, " + "long " * 40 + "'}}}\n"


def test_entries_with_measurements_alone_take_one_line() -> None:
    block = "aten::b:\n  owner: x\n"
    text = with_entries(block, {f"aten::{name}": {"measured": MEASURED} for name in "acd"})
    assert text == f"aten::a: {ONE_LINE}\n{block}\naten::c: {ONE_LINE}aten::d: {ONE_LINE}"
    between = with_entries(text, {"aten::cc": {"measured": MEASURED}})
    assert between == text.replace("aten::d", f"aten::cc: {ONE_LINE}aten::d")


def test_a_field_of_a_person_makes_a_block_of_one_line() -> None:
    text = "".join(f"aten::{name}: {ONE_LINE}" for name in "abc")
    changed = with_entries(text, {"aten::b": {"owner": "x", "measured": MEASURED}})
    before, after = f"aten::a: {ONE_LINE}\n", f"\naten::c: {ONE_LINE}"
    simulated = ONE_LINE.removeprefix("{measured: {").replace("}}}", "}")
    assert changed == before + "aten::b:\n  owner: x\n  measured:\n    " + simulated + after


def test_line_ends_of_windows_stay() -> None:
    text = "# head\r\naten::mode:\r\n  owner: a\r\n  issue: 7"
    changed = with_entries(
        text, {"aten::mode": {"owner": "a", "kernel": "mode", "issue": "8"}, "aten::z": {"owner": "y"}}
    )
    assert changed == (
        "# head\r\naten::mode:\r\n  owner: a\r\n  kernel: mode\r\n  issue: 8\r\n\r\naten::z:\r\n  owner: y\r\n"
    )


def test_first_entries_go_below_the_head_of_a_file() -> None:
    for head in ("", "# head\n\n", "---\n\n"):
        text = with_entries(head, {"aten::b": {"owner": "y"}, "aten::a": {"owner": "x"}})
        assert text == head + "aten::a:\n  owner: x\n\naten::b:\n  owner: y\n"


def test_an_entry_before_the_first_leaves_the_comment_with_its_entry() -> None:
    text = "# head\n\n# of b\naten::b:\n  owner: y\n"
    assert with_entries(text, {"aten::a": {"owner": "x"}}) == (
        "# head\n\naten::a:\n  owner: x\n\n# of b\naten::b:\n  owner: y\n"
    )


def test_numbers_of_issues_are_plain_and_releases_are_text_for_other_readers() -> None:
    import yaml

    text = with_entries("", {"aten::a": {"issue": "77764", "torch": "2.10", "notes": "007", "owner": "no"}})
    assert text == "aten::a:\n  issue: 77764\n  torch: '2.10'\n  notes: '007'\n  owner: 'no'\n"
    assert yaml.safe_load(text)["aten::a"] == {"issue": 77764, "torch": "2.10", "notes": "007", "owner": "no"}


# A person's file: entries with fields in several styles, comments and blank lines wherever YAML allows them.

WORDS = st.sampled_from(
    ["a", "mode", "two words", "é 😀", "x: y", "it's", "# hash", "2.10", "null", "[1]", "{", "-", "%"]
)
PLAIN_WORDS = st.sampled_from(["a", "mode", "two words", "é 😀", "v-1"])
COMMENTS = st.sampled_from(["# c1", "# a: b", "# 'quoted", "#", "# é"])
FIELDS = ("status", "owner", "issue", "notes")
OPERATORS = ("aten::a", "aten::b", "aten::bb", "aten::c", "aten::d")


def quoted(word: str) -> str:
    return "'" + word.replace("'", "''") + "'"


@st.composite
def written_values(draw: st.DrawFn, indent: int) -> str:
    """A value as a person might write it behind `key:`, with its comment and line break."""
    style = draw(st.sampled_from(["plain", "quoted", "double", "empty", "folded", "literal", "wrapped", "list"]))
    comment = draw(st.one_of(st.just(""), COMMENTS.map(lambda text: "  " + text)))
    deeper = " " * (indent + draw(st.integers(2, 4)))
    match style:
        case "plain":
            return f" {draw(PLAIN_WORDS)}{comment}\n"
        case "quoted":
            return f"  {quoted(draw(WORDS))}{comment}\n"
        case "double":
            return f' "{draw(PLAIN_WORDS)} \\n # no"{comment}\n'
        case "empty":
            return f"{comment}\n"
        case "wrapped":
            return f" {draw(PLAIN_WORDS)}\n{deeper}{draw(PLAIN_WORDS)}{comment}\n"
        case "list":
            return f" [{draw(PLAIN_WORDS)},{comment}\n{deeper}{quoted(draw(WORDS))}]\n"
        case _:
            mark = ">" if style == "folded" else "|"
            keep = draw(st.sampled_from(["", "-"]))
            return f" {mark}{keep}{comment}\n{deeper}{draw(WORDS)}\n{deeper}# text\n"


@st.composite
def between(draw: st.DrawFn, indent: int) -> str:
    """Nothing, or comment lines and blank lines between fields."""
    lines = draw(st.lists(st.one_of(st.just(""), COMMENTS), max_size=2))
    return "".join(f"{' ' * indent if line else ''}{line}\n" for line in lines)


@st.composite
def mappings(draw: st.DrawFn, indent: int, names: tuple[str, ...], depth: int) -> str:
    chosen = draw(st.lists(st.sampled_from(names), min_size=1, max_size=len(names), unique=True))
    written = ""
    for name in chosen:
        written += draw(between(indent)) + " " * indent + name + ":"
        if depth and draw(st.booleans()):
            inner = indent + draw(st.sampled_from([2, 4]))
            comment = draw(st.one_of(st.just(""), COMMENTS.map(lambda text: " " + text)))
            written += comment + "\n" + draw(mappings(inner, FIELDS, depth - 1))
        else:
            written += draw(written_values(indent))
    return written


@st.composite
def files(draw: st.DrawFn) -> str:
    head = draw(st.sampled_from(["", "# head\n\n", "# head of a\n", "---\n"]))
    operators = sorted(draw(st.lists(st.sampled_from(OPERATORS), max_size=4, unique=True)))
    body = ""
    for operator in operators:
        indent = draw(st.sampled_from([2, 4]))
        body += f"{operator}:\n{draw(mappings(indent, FIELDS, 2))}" + draw(between(0))
    text = head + body
    return text.removesuffix("\n") if draw(st.booleans()) else text


LONGER_VALUES = st.sampled_from(
    [
        "two\nlines",
        "line\n",
        "end\n\n",
        " indented\n  more",
        "tab\there",
        "trailing ",
        "x " * 90,
        "x" * 300,
        "\\",
        "007",
    ]
)
NEW_VALUES = st.recursive(
    st.one_of(WORDS, LONGER_VALUES),
    lambda inner: st.one_of(
        st.lists(WORDS, min_size=1, max_size=3), st.dictionaries(st.sampled_from(FIELDS), inner, min_size=1, max_size=3)
    ),
    max_leaves=6,
)
NEW_FIELDS = st.dictionaries(st.sampled_from(FIELDS), NEW_VALUES, min_size=1, max_size=4)


def comments_in(text: str) -> Counter[str]:
    """The comments of a text, found without a parser: the strategies above write `#` in text only where it is known."""
    in_text = ("# no", "# text", "# hash")
    comments: Counter[str] = Counter()
    for line in text.splitlines():
        position = next((i for i, c in enumerate(line) if c == "#" and (i == 0 or line[i - 1] in " \t")), None)
        while position is not None and line[position:].startswith(in_text):
            position = next((i for i in range(position + 1, len(line)) if line[i] == "#" and line[i - 1] == " "), None)
        if position is not None:
            comments[line[position:].rstrip()] += 1
    return comments


@settings(deadline=None)
@given(text=files(), new=st.dictionaries(st.sampled_from(OPERATORS), NEW_FIELDS, max_size=3))
def test_any_file_gets_exactly_the_new_data_and_keeps_every_comment(
    text: str, new: dict[str, dict[str, Plain]]
) -> None:
    before = data_in(text)
    changed = with_entries(text, new)
    assert data_in(changed) == before | new
    assert comments_in(changed) >= comments_in(text)
    assert with_entries(changed, new) == changed


@settings(deadline=None)
@given(text=files(), data=st.data())
def test_no_line_outside_the_changed_entry_is_touched(text: str, data: st.DataObject) -> None:
    operator = data.draw(st.sampled_from(OPERATORS))
    changed = iter(with_entries(text, {operator: data.draw(NEW_FIELDS)}).splitlines())
    for line in _lines_outside(text, operator):
        assert line in changed  # which also moves on behind it: all lines, in their order


def _lines_outside(text: str, operator: str) -> list[str]:
    """The lines before an entry's key and from the next entry's key on; all lines for an operator without an entry."""
    blocks, _ = parse(text, Path("m.yaml"))
    keys = [block.key.start_mark.line for block in blocks]
    lines = text.splitlines()
    for block, following in zip(blocks, [*keys[1:], len(lines)], strict=False):
        if block.operator == operator:
            return lines[: block.key.start_mark.line] + lines[following:]
    return lines


@settings(deadline=None)
@given(text=files(), data=st.data())
def test_one_changed_value_changes_the_lines_of_its_field_alone(text: str, data: st.DataObject) -> None:
    before = data_in(text)
    flat = [
        (operator, field)
        for operator, fields in before.items()
        if isinstance(fields, dict)
        for field, value in fields.items()
        if isinstance(value, str)
    ]
    if not flat:
        return
    operator, field = data.draw(st.sampled_from(flat))
    fields = before[operator]
    assert isinstance(fields, dict)
    changed = with_entries(text, {operator: {**fields, field: "entirely new"}})
    old_lines, new_lines = Counter(text.splitlines()), Counter(changed.splitlines())
    assert sum((new_lines - old_lines).values()) <= 2  # the field, and a comment inside its old value
    assert sum((old_lines - new_lines).values()) <= 3  # no value that the strategies write has more lines
