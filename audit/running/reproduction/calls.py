"""The call of a case as source code: an expression, and the definitions that it needs."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from textwrap import dedent
from types import FunctionType
from typing import Any

import torch

from ....errors import MpsmithError
from ...cases.calls.invocation import SchemaCall
from ...cases.sources.modules import ModuleCall
from ...model.case import Case
from ...model.group import GroupKey
from .forms import METHODS

NO_SCRIPT = "(`mpsmith replay` without --script shows it)"
FORM_SOURCE = "forms"
# Their calls are functions of their tables; a program contains them unchanged.
OWN_FUNCTIONS = "compiled situations"
FUNCTIONAL = "from torch.nn import functional\n"


@dataclass(frozen=True)
class WrittenCall:
    """A call in a program that needs only torch.

    Attributes:
        expression: the function that is called with the case's `args` and `kwargs`.
        definition: the statements that define it; "" for a function of torch.
    """

    expression: str
    definition: str = ""


def written_call(case: Case, key: GroupKey, text_of: Callable[[Any], str]) -> WrittenCall:
    """The call of a case. Raises MpsmithError for a call that a few lines of Python cannot repeat.

    Args:
        text_of: writes an argument of a module's constructor as source; raises MpsmithError if it cannot.
    """
    if case.written:
        return WrittenCall(case.written)
    if isinstance(case.call, SchemaCall):
        return WrittenCall(_overload(case.call, key))
    if isinstance(case.call, ModuleCall):
        return _of_module(case.call, key, text_of)
    if key.source == OWN_FUNCTIONS:
        return _own_function(case.call, key)
    for text in _spellings(case, key):
        if callable(_named(text)):
            return WrittenCall(text)
    raise _cannot(key)


def _cannot(key: GroupKey) -> MpsmithError:
    return MpsmithError(f"{key.label}: a few lines of Python cannot repeat this call {NO_SCRIPT}")


def _overload(call: SchemaCall, key: GroupKey) -> str:
    if not call.needs_torch_alone:
        raise MpsmithError(f"{key.label}: torch alone cannot repeat this call on the CPU {NO_SCRIPT}")
    operator, _, overload = key.operator.partition(".")
    return f"torch.ops.aten.{operator}.{overload or 'default'}"


def _spellings(case: Case, key: GroupKey) -> Sequence[str]:
    """The possible names of an OpInfo's operator in torch."""
    if key.source == FORM_SOURCE and case.title in METHODS:
        return (f"torch.Tensor.{key.operator.rpartition('.')[2]}{METHODS[case.title]}",)
    if key.variant.endswith("/inplace"):
        return (f"torch.{key.operator}_",)
    return (f"torch.{key.operator}", f"torch.Tensor.{key.operator}", f"torch.ops.aten.{key.operator}")


def _named(text: str) -> Any:
    """The object with this name in torch, None if there is none."""
    value: Any = torch
    for part in text.split(".")[1:]:
        value = getattr(value, part, None)
    return value


def _own_function(call: Callable[..., Any], key: GroupKey) -> WrittenCall:
    """A function of torch by its name; any other one by its source, without annotations, which would need imports."""
    name = f"torch.{key.operator}"
    if _named(name) is call:
        return WrittenCall(name)
    if not isinstance(call, FunctionType) or call.__name__ == "<lambda>" or call.__closure__:
        raise _cannot(key)
    (function,) = ast.parse(dedent(inspect.getsource(call))).body
    assert isinstance(function, ast.FunctionDef)
    arguments = function.args
    for argument in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg):
        if argument is not None:
            argument.annotation = None
    function.returns = None
    text = f"{ast.unparse(function)}\n"
    return WrittenCall(call.__name__, f"{FUNCTIONAL}\n\n{text}" if "functional." in text else text)


def _of_module(call: ModuleCall, key: GroupKey, text_of: Callable[[Any], str]) -> WrittenCall:
    """A module that gets its parameters and buffers with the arguments, as in the case."""
    kind = call.kind
    name = f"torch.nn.{kind.__name__}"
    if _named(name) is not kind or call.lazy:
        raise _cannot(key)
    given = [
        text_of(value) if isinstance(at, int) else f"{at}={text_of(value)}" for at, value in call.built_with.items()
    ]
    definition = (
        f"module = {name}({', '.join(given)}).train({call.training})\n\n\n"
        "def call(state, inputs, keywords):\n"
        "    return torch.func.functional_call(module, state, inputs, keywords)\n"
    )
    return WrittenCall("call", definition)
