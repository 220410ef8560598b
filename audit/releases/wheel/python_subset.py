"""Evaluates the small part of Python in which PyTorch's test lists are written, from the syntax tree.

The lists come from a wheel that need not be the installed one, so nothing is imported and nothing is executed:
anything that is not listed here raises NotInSubsetError.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Iterator, Mapping
from typing import Any


class NotInSubsetError(Exception):
    """The code uses something outside of the subset; the message names the line and the construct."""

    def __init__(self, node: ast.AST) -> None:
        super().__init__(f"line {getattr(node, 'lineno', '?')}: {ast.unparse(node)[:60]}")


class _ReturnError(Exception):
    """A `return` was reached."""


Call = Callable[..., Any]

_COMPARE: Mapping[type[ast.cmpop], Callable[[Any, Any], bool]] = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.In: lambda item, container: item in container,
    ast.NotIn: lambda item, container: item not in container,
    ast.Is: lambda left, right: left is right,
    ast.IsNot: lambda left, right: left is not right,
}
_BINARY: Mapping[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.BitOr: operator.or_,
    ast.Sub: operator.sub,
}
_METHODS = {"update", "items", "keys", "values", "union", "add", "append", "extend", "get"}


class Subset:
    """Runs statements over the given names.

    `calls` maps the text of a called expression, such as `torch.backends.mps.is_available`, to the function to call.
    `attribute` returns the value of a dotted name whose first part is not bound, such as `torch.float16`.
    """

    def __init__(
        self, names: Mapping[str, Any], calls: Mapping[str, Call], attribute: Callable[[str], Any] | None = None
    ) -> None:
        self.names: dict[str, Any] = dict(names)
        self.problems: list[str] = []
        self._calls = calls
        self._attribute = attribute

    def run(self, statements: list[ast.stmt]) -> None:
        """Run the statements. One outside of the subset is skipped and noted in `problems`."""
        for statement in statements:
            try:
                self._run_one(statement)
            except _ReturnError:
                return
            except (NotInSubsetError, KeyError, TypeError, AttributeError) as error:
                noted = str(error) if isinstance(error, NotInSubsetError) else str(NotInSubsetError(statement))
                if noted not in self.problems:
                    self.problems.append(noted)

    def _run_one(self, statement: ast.stmt) -> None:
        match statement:
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                self.names[name] = self.value(value)
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
                self.names[name] = self.value(value)
            case ast.AugAssign(target=ast.Name(id=name), op=op, value=value) if type(op) in _BINARY:
                self.names[name] = _BINARY[type(op)](self.names[name], self.value(value))
            case ast.Expr(value=ast.Constant()) | ast.Pass() | ast.FunctionDef():
                pass
            case ast.Expr(value=value):
                self.value(value)
            case ast.If(test=test, body=body, orelse=orelse):
                self.run(body if self.value(test) else orelse)
            case ast.For(target=ast.Name(id=name), iter=items, body=body):
                for item in self.value(items):
                    self.names[name] = item
                    self.run(body)
            case ast.Return():
                raise _ReturnError
            case _:
                raise NotInSubsetError(statement)

    def value(self, node: ast.expr) -> Any:
        """The value of an expression. Raises NotInSubsetError for an expression outside the subset."""
        match node:
            case ast.Constant(value=value):
                return value
            case ast.Name(id=name) if name in self.names:
                return self.names[name]
            case ast.List(elts=items):
                return list(self._items(items))
            case ast.Tuple(elts=items):
                return tuple(self._items(items))
            case ast.Set(elts=items):
                return set(self._items(items))
            case ast.Dict(keys=keys, values=values):
                return self._dictionary(keys, values)
            case ast.Subscript(value=container, slice=key):
                return self.value(container)[self.value(key)]
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                return not self.value(operand)
            case ast.BoolOp(op=op, values=values):
                return self._boolean(isinstance(op, ast.And), values)
            case ast.BinOp(left=left, op=op, right=right) if type(op) in _BINARY:
                return _BINARY[type(op)](self.value(left), self.value(right))
            case ast.Compare(left=left, ops=[op], comparators=[right]) if type(op) in _COMPARE:
                return _COMPARE[type(op)](self.value(left), self.value(right))
            case ast.IfExp(test=test, body=body, orelse=orelse):
                return self.value(body if self.value(test) else orelse)
            case ast.Attribute():
                return self._attribute_value(node)
            case ast.Call():
                return self._call(node)
        raise NotInSubsetError(node)

    def _items(self, nodes: list[ast.expr]) -> Iterator[Any]:
        for node in nodes:
            if isinstance(node, ast.Starred):
                yield from self.value(node.value)
            else:
                yield self.value(node)

    def _dictionary(self, keys: list[ast.expr | None], values: list[ast.expr]) -> dict[Any, Any]:
        result: dict[Any, Any] = {}
        for key, value in zip(keys, values, strict=True):
            if key is None:
                result.update(self.value(value))
            else:
                result[self.value(key)] = self.value(value)
        return result

    def _boolean(self, is_and: bool, nodes: list[ast.expr]) -> Any:
        result: Any = is_and
        for node in nodes:
            result = self.value(node)
            if bool(result) is not is_and:
                break
        return result

    def _attribute_value(self, node: ast.Attribute) -> Any:
        path = ast.unparse(node)
        first = path.partition(".")[0]
        if first in self.names:
            return getattr(self.value(node.value), node.attr)
        if self._attribute is not None and all(part.isidentifier() for part in path.split(".")):
            return self._attribute(path)
        raise NotInSubsetError(node)

    def _call(self, node: ast.Call) -> Any:
        path = ast.unparse(node.func)
        arguments = list(self._items(node.args))
        named = {keyword.arg: self.value(keyword.value) for keyword in node.keywords if keyword.arg}
        if path in self._calls:
            return self._calls[path](*arguments, **named)
        if isinstance(node.func, ast.Attribute) and node.func.attr in _METHODS:
            container = self.value(node.func.value)
            if isinstance(container, (dict, set, list)):
                return getattr(container, node.func.attr)(*arguments, **named)
        raise NotInSubsetError(node)
