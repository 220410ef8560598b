import ast
from typing import Any

import pytest

from mpsmith.audit.releases.wheel.python_subset import NotInSubsetError, Subset


def value(text: str, **names: Any) -> Any:
    return Subset(names, {"double": lambda x: 2 * x}, lambda path: f"<{path}>").value(ast.parse(text, mode="eval").body)


def run(text: str, **names: Any) -> Subset:
    subset = Subset(names, {"set": set})
    subset.run(ast.parse(text).body)
    return subset


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[1, *x, (2, 3)]", [1, 8, 9, (2, 3)]),
        ("{'a': None, **d}", {"a": None, "b": 1}),
        ("{torch.half, 'x'}", {"<torch.half>", "x"}),
        ("1 if v < 14.4 else 2", 1),
        ("v >= 13.3 and not v > 14", True),
        ("'b' in d or missing", True),
        ("d['b'] is not None", True),
        ("double(4)", 8),
        ("x + [1]", [8, 9, 1]),
        ("{1} | {2}", {1, 2}),
        ("list_of.union({3})", {2, 3}),
    ],
)
def test_expressions(text: str, expected: object) -> None:
    assert value(text, x=[8, 9], d={"b": 1}, v=13.5, list_of={2}) == expected


@pytest.mark.parametrize(
    "text",
    [
        "__import__('os')",
        "().__class__",
        "open('x')",
        "[x for x in y]",
        "lambda: 1",
        "f'{x}'",
        "x.clear()",
        "1 < 2 < 3",
    ],
)
def test_refuses_code_outside_the_subset(text: str) -> None:
    with pytest.raises(NotInSubsetError, match="line 1: "):
        value(text, x=[])


def test_statements() -> None:
    subset = run("""
A: dict = {"x": 1}
A.update({"y": 2})
B = set()
for name in ["x", "z"]:
    if name in A:
        B.add(name)
B |= {"w"}
""")
    assert subset.names["A"] == {"x": 1, "y": 2}
    assert subset.names["B"] == {"x", "w"}
    assert subset.problems == []


def test_a_statement_outside_is_noted_and_the_rest_runs() -> None:
    subset = run("import os\nA = 1\nB = os.system('x')\nC = unknown['a']\nD = 2\nreturn_ = 3\n")
    assert (subset.names["A"], subset.names["D"]) == (1, 2)
    assert [problem.split(":")[0] for problem in subset.problems] == ["line 1", "line 3", "line 4"]


def test_a_return_ends_the_run() -> None:
    subset = Subset({}, {})
    function = ast.parse("def f():\n    A = 1\n    return A\n    B = 2").body[0]
    assert isinstance(function, ast.FunctionDef)
    subset.run(function.body)
    assert "B" not in subset.names
