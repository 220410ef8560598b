"""Comments of C++ and Metal source: what is one, what only looks like one, and that everything keeps its line."""

from __future__ import annotations

import pytest

from mpsmith.simulator.objc.comments import blanked, without_comments


@pytest.mark.parametrize(
    ("source", "left"),
    [
        ("a; // b\nc;", "a;  \nc;"),
        ("a /* b */ c", "a   c"),
        ("int/**/a", "int a"),  # a comment parts words
        ("a /* b\nc // d */ e", "a  \n e"),
        ("a // b /* c\nd */ e", "a  \nd */ e"),
        ("a // b \\\nc\nd", "a  \n\nd"),  # the line goes on, and the comment with it
        ("a // b \\\r\nc\r\nd", "a  \n\nd"),
        ("a // b \\ c\nd", "a  \nd"),
        ("a /* never closed\nb", "a  \n"),
        ("a / b * c", "a / b * c"),
        ("", ""),
    ],
)
def test_a_comment_is_a_space_and_its_line_ends(source: str, left: str) -> None:
    assert without_comments(source) == left
    assert left.count("\n") == source.count("\n")


@pytest.mark.parametrize(
    "source",
    [
        'NSString* url = @"https://pytorch.org/*";',
        r'auto a = "\" // a"; auto b = "/* b";',
        r"""auto quote = '"'; auto slash = '\'';""",
        'auto lib = R"METAL(\nkernel // )"\n/* )METAL";',
        'auto lib = u8R"(" // )" ; auto wide = LR"x(/*)x";',
        "auto many = 1'000'000;",
    ],
)
def test_comment_marks_in_a_literal_are_not_comments(source: str) -> None:
    assert without_comments(source) == source
    assert without_comments(f"{source} // a") == f"{source}  "


@pytest.mark.parametrize(
    "source",
    [
        "int many = 1'000; // a \"quoted\" word, and what it's for\ncall(many);",
        '#error "don\'t" // yes\ncall(many);',
        'auto FooR = Bar"x"; /* " */ call(many);',
        "// an odd \" quote\ncall(many); /* it's */",
    ],
)
def test_quotes_that_open_nothing_hide_no_comment(source: str) -> None:
    left = without_comments(source)
    assert "call(many);" in left
    assert "//" not in left
    assert "/*" not in left


def test_blanked_code_keeps_its_offsets() -> None:
    source = 'x = f("g(1)", \'(\') + R"(\ny)"; // h(2)\n/* i(3)\n*/ z();'
    code = blanked(source)
    assert [len(line) for line in code.split("\n")] == [len(line) for line in source.split("\n")]
    assert code.split() == ["x", "=", "f(", ",", ")", "+", ";", "z();"]
    assert code.index("z()") == source.index("z()")
