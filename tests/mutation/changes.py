"""The mutants of a module: each is its source with one small change that a test should notice.

Most changes are the operators of cosmic-ray. Those it lacks are made here: a number a hundred times as large, a row
missing from a table, a statement left out, `in` turned round. Left out are changes that cannot change behaviour
whatever the code: in annotations, which nothing evaluates; `is` for `==`, which are the same for dtypes, enums and
None; `frozen=` of a dataclass, which mypy holds; and replacements that another one implies (of `<` only `<=` and `>=`).
"""

from __future__ import annotations

import ast
import pickle
import random
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import parso
from cosmic_ray.ast import Visitor, ast_nodes
from cosmic_ray.operators.provider import OperatorProvider

BINARY = (
    "Add_Sub Sub_Add Mul_Div Div_Mul FloorDiv_Mul Mod_Mul Pow_Mul RShift_LShift LShift_RShift BitOr_BitAnd BitAnd_BitOr"
)
COMPARISONS = "Eq_NotEq NotEq_Eq Lt_LtE Lt_GtE LtE_Lt LtE_Gt Gt_GtE Gt_LtE GtE_Gt GtE_Lt Is_IsNot IsNot_Is"
UNARY = "Delete_USub Delete_Invert Delete_Not"
OTHERS = (
    "AddNot ReplaceTrueWithFalse ReplaceFalseWithTrue ReplaceAndWithOr ReplaceOrWithAnd ReplaceBreakWithContinue "
    "ReplaceContinueWithBreak ExceptionReplacer NumberReplacer RemoveDecorator ZeroIterationForLoop"
)
FROM_COSMIC_RAY = (
    *(f"ReplaceBinaryOperator_{name}" for name in BINARY.split()),
    *(f"ReplaceComparisonOperator_{name}" for name in COMPARISONS.split()),
    *(f"ReplaceUnaryOperator_{name}" for name in UNARY.split()),
    *OTHERS.split(),
)
Range = tuple[tuple[int, int], tuple[int, int]]  # (line, byte column) of the start and of the end


@dataclass(frozen=True)
class Mutant:
    """One change: its first line, that line before and after, and the whole source with it."""

    operator: str
    line: int
    before: str
    after: str
    source: str

    @property
    def change(self) -> str:
        """For people, and for the list of equivalent mutants: the same wherever the line moves to."""
        return f"{self.before} -> {self.after}"


def mutants_of(source: str) -> list[Mutant]:
    """All mutants that compile, in the order of their lines; no two of the same code."""
    seen = {_meaning(source)}
    mutants = []
    for operator, changed in (*_by_cosmic_ray(source), *_by_hand(source)):
        try:
            compile(changed, "mutant", "exec", dont_inherit=True)  # what ast.parse takes may still be no program
            meaning = _meaning(changed)
        except SyntaxError:
            continue
        if meaning not in seen:
            seen.add(meaning)
            mutants.append(_mutant(operator, source, changed))
    return sorted(mutants, key=lambda mutant: (mutant.line, mutant.operator, mutant.after))


def sampled(mutants: list[Mutant], number: int | None, seed: str) -> list[Mutant]:
    """At most so many of them, the same for the same seed."""
    if number is None or len(mutants) <= number:
        return mutants
    positions = sorted(random.Random(seed).sample(range(len(mutants)), number))
    return [mutants[position] for position in positions]


def _mutant(operator: str, source: str, changed: str) -> Mutant:
    old, new = source.splitlines(), changed.splitlines()
    same = next(i for i, line in enumerate(old) if i >= len(new) or line != new[i])
    shown = next(i for i in range(same, len(old)) if old[i].strip())  # a decorator goes with the line above it
    after = new[shown].strip() if shown < len(new) else ""
    return Mutant(operator, shown + 1, old[shown].strip(), after or "(left out)", changed)


def _meaning(source: str) -> str:
    """What Python makes of the source, without annotations: equal for mutants that cannot differ."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.arg):
            node.annotation = None
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            node.returns = None
        elif isinstance(node, ast.AnnAssign):
            node.annotation = ast.Constant(None)
        elif isinstance(node, ast.keyword) and node.arg == "frozen":
            node.value = ast.Constant(True)
    return ast.dump(_Positive().visit(tree))


class _Positive(ast.NodeTransformer):
    """`not a is b` is `a is not b`."""

    OPPOSITES = ((ast.Is, ast.IsNot), (ast.Eq, ast.NotEq), (ast.In, ast.NotIn))

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.AST:
        self.generic_visit(node)
        if isinstance(node.op, ast.Not) and isinstance(node.operand, ast.Compare) and len(node.operand.ops) == 1:
            (operator,) = node.operand.ops
            for either, other in (*self.OPPOSITES, *((b, a) for a, b in self.OPPOSITES)):
                if isinstance(operator, either):
                    node.operand.ops = [other()]
                    return node.operand
        return node


# ---- cosmic-ray's


class _Change(Visitor):
    """Applies one operator at one of the places that it fits."""

    def __init__(self, operator: object, occurrence: int) -> None:
        self.operator = operator
        self.left = occurrence

    def visit(self, node: object) -> object:
        for index, _ in enumerate(self.operator.mutation_positions(node)):
            if self.left == 0:
                node = self.operator.mutate(node, index)
            self.left -= 1
        return node


def _by_cosmic_ray(source: str) -> Iterator[tuple[str, str]]:
    provider = OperatorProvider()
    tree = parso.parse(source)
    copy = pickle.dumps(tree)  # a third of the time of another parse
    for name in FROM_COSMIC_RAY:
        operator = provider[name]()
        places = sum(len(list(operator.mutation_positions(node))) for node in ast_nodes(tree))
        for occurrence in range(places):
            changed = _Change(operator, occurrence).walk(pickle.loads(copy))
            if changed is not None:
                yield name, changed.get_code()


# ---- ours


def _by_hand(source: str) -> Iterator[tuple[str, str]]:
    lines = source.encode().splitlines(keepends=True)
    for node in ast.walk(ast.parse(source)):
        for operator, (start, end), text in _edits(node, lines):
            yield operator, _replaced(lines, start, end, text)


def _edits(node: ast.AST, lines: list[bytes]) -> Iterator[tuple[str, Range, str]]:
    if isinstance(node, ast.Constant) and isinstance(node.value, float) and node.value:
        yield "TimesHundred", _range(node), repr(node.value * 100)
    stored = isinstance(getattr(node, "ctx", None), ast.Store)
    if isinstance(node, (ast.List, ast.Tuple, ast.Set)) and len(node.elts) > 1 and not stored:
        yield from _without_each([_range(element) for element in node.elts], lines)
    if isinstance(node, ast.Dict) and len(node.values) > 1 and all(node.keys):
        items = zip(node.keys, node.values, strict=True)
        yield from _without_each([(_range(key)[0], _range(value)[1]) for key, value in items if key], lines)
    if isinstance(node, ast.AugAssign | ast.Raise) or (
        isinstance(node, ast.Expr) and isinstance(node.value, (ast.Call, ast.Yield, ast.YieldFrom))
    ):
        yield "LeaveOutStatement", _range(node), "pass"
    if isinstance(node, ast.Compare):
        for (left, right), kind in zip(pairwise([node.left, *node.comparators]), node.ops, strict=True):
            if isinstance(kind, (ast.In, ast.NotIn)):
                text = " in " if isinstance(kind, ast.NotIn) else " not in "
                yield "TurnIn", (_range(left)[1], _range(right)[0]), text


def _without_each(elements: list[Range], lines: list[bytes]) -> Iterator[tuple[str, Range, str]]:
    for (start, _), (following, _) in pairwise(elements):
        yield "LeaveOutElement", (start, following), ""
    start, (line, column) = elements[-1]
    comma = lines[line - 1][column : column + 1] == b","
    yield "LeaveOutElement", (start, (line, column + comma)), ""


def _range(node: ast.expr | ast.stmt) -> Range:
    assert node.end_lineno is not None
    assert node.end_col_offset is not None
    return (node.lineno, node.col_offset), (node.end_lineno, node.end_col_offset)


def _replaced(lines: list[bytes], start: tuple[int, int], end: tuple[int, int], text: str) -> str:
    (first, column), (last, end_column) = start, end
    before = b"".join(lines[: first - 1]) + lines[first - 1][:column]
    after = lines[last - 1][end_column:] + b"".join(lines[last:])
    return (before + text.encode() + after).decode()
