"""The OpInfos of a release, read from its test sources: names, the dtypes tested on mps, and their own mps marks."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ....errors import MpsmithError
from .opinfo_dtypes import dtype_functions, dtype_of
from .python_subset import NotInSubsetError, Subset

FOLDER = "torch/testing/_internal/"
DEFINITIONS = f"{FOLDER}opinfo/definitions/"
MAIN = f"{FOLDER}common_methods_invocations.py"
DEFINITION_FILES = ("__init__", "_masked", "fft", "linalg", "nested", "signal", "sparse", "special")

_NOT_IMPLEMENTED = re.compile(r"not (?:currently )?implemented for (?:the )?MPS|not supported on MPS", re.IGNORECASE)
_OPERATOR = re.compile(r"'(aten::[\w.]+)'")


@dataclass(frozen=True)
class OwnMark:
    """A `DecorateInfo` with `device_type='mps'` on an OpInfo.

    `where` is the test class and test, as far as given; `dtypes` is None for all. `reason` is the comment above it;
    `operators` are the operators that the comment names as not implemented.
    """

    where: str
    skipped: bool
    dtypes: tuple[str, ...] | None
    reason: str
    operators: tuple[str, ...]

    @property
    def unimplemented(self) -> bool:
        """Whether the comment says that an operator is not implemented on mps."""
        return _NOT_IMPLEMENTED.search(self.reason) is not None


@dataclass(frozen=True)
class OpInfoDeclaration:
    """One OpInfo as its source declares it. `dtypes` are those tested on mps, None if they cannot be evaluated."""

    name: str
    variant: str
    dtypes: frozenset[str] | None
    marks: tuple[OwnMark, ...] = ()

    @property
    def test(self) -> str:
        """The key that PyTorch's lists use: the name followed by the variant."""
        return self.name + self.variant

    @property
    def operator(self) -> str:
        """The ATen operator of the OpInfo's name."""
        return operator_of_opinfo(self.name)


def operator_of_opinfo(name: str) -> str:
    """The name that its ATen operator would have: `linalg_eig` for `linalg.eig`, `glu` for `nn.functional.glu`."""
    return name.removeprefix("nn.functional.").replace(".", "_")


def read_opinfos(sources: Mapping[str, bytes]) -> list[OpInfoDeclaration]:
    """The OpInfos in the test sources, which are given by file name; each test once, in the order of the sources.

    OpInfos that the sources make in a loop or a function are not found. Raises MpsmithError for text that is not
    Python.
    """
    by_test: dict[str, OpInfoDeclaration] = {}
    for name, text in sources.items():
        try:
            tree = ast.parse(text)
        except (SyntaxError, ValueError) as error:
            raise MpsmithError(f"{name} is not valid Python: {error}") from None
        lines = text.decode("utf-8", "replace").splitlines()
        for call in _opinfo_calls(tree):
            opinfo = _opinfo(call, lines)
            if opinfo is not None:
                by_test.setdefault(opinfo.test, opinfo)
    return list(by_test.values())


def _opinfo_calls(tree: ast.Module) -> Iterator[ast.Call]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id.endswith("Info"):
            is_reference = node.func.id.endswith("PythonRefInfo")
            if node.func.id not in ("DecorateInfo", "ModuleInfo", "SkipInfo") and not is_reference:
                yield node


def _opinfo(call: ast.Call, lines: Sequence[str]) -> OpInfoDeclaration | None:
    keywords = {keyword.arg: keyword.value for keyword in call.keywords if keyword.arg}
    name = call.args[0] if call.args else keywords.get("name")
    if not (isinstance(name, ast.Constant) and isinstance(name.value, str)):
        return None
    variant = keywords.get("variant_test_name")
    is_foreach = isinstance(call.func, ast.Name) and call.func.id == "ForeachFuncInfo"
    return OpInfoDeclaration(
        name=f"_foreach_{name.value}" if is_foreach else name.value,
        variant=str(variant.value) if isinstance(variant, ast.Constant) else "",
        dtypes=_tested_dtypes(keywords),
        marks=tuple(_own_marks(keywords, lines)),
    )


def _tested_dtypes(keywords: Mapping[str, ast.expr]) -> frozenset[str] | None:
    node = keywords.get("dtypesIfMPS") or keywords.get("dtypes")
    if node is None:
        return None
    value = _evaluate(node)
    return frozenset(value) if isinstance(value, (frozenset, set, tuple, list)) else None


def _evaluate(node: ast.expr) -> Any:
    """The value of an expression of dtypes, or None if the subset cannot evaluate it."""
    try:
        return Subset({}, dtype_functions(), dtype_of).value(node)
    except (NotInSubsetError, TypeError, KeyError):
        return None


def _own_marks(keywords: Mapping[str, ast.expr], lines: Sequence[str]) -> Iterator[OwnMark]:
    for field in ("skips", "decorators"):
        for node in ast.walk(keywords[field]) if field in keywords else ():
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "DecorateInfo":
                mark = _own_mark(node, lines)
                if mark is not None:
                    yield mark


def _own_mark(call: ast.Call, lines: Sequence[str]) -> OwnMark | None:
    keywords = {keyword.arg: keyword.value for keyword in call.keywords if keyword.arg}
    device = keywords.get("device_type")
    if not (isinstance(device, ast.Constant) and device.value == "mps") or not call.args:
        return None
    kind = ast.unparse(call.args[0])
    if not kind.startswith(("unittest.expectedFailure", "unittest.skip")):
        return None
    where = [str(node.value) for node in call.args[1:] if isinstance(node, ast.Constant)]
    dtypes = _evaluate(keywords["dtypes"]) if "dtypes" in keywords else None
    reason = _comment_above(lines, call.lineno - 1)
    return OwnMark(
        where=".".join(where) or "all tests",
        skipped=kind.startswith("unittest.skip"),
        dtypes=tuple(dtypes) if dtypes is not None else None,
        reason=reason,
        operators=tuple(_OPERATOR.findall(reason)),
    )


def _comment_above(lines: Sequence[str], index: int) -> str:
    """The comment above a line; marks in between are skipped, because one comment often describes several marks."""
    above = index - 1
    while above >= 0 and not lines[above].lstrip().startswith("#"):
        is_mark = re.search(r"DecorateInfo|device_type|dtypes=|unittest\.|^\s*['\")]", lines[above])
        if not is_mark or re.search(r"\b(skips|decorators)=", lines[above]):
            return ""
        above -= 1
    comment: list[str] = []
    while above >= 0 and lines[above].lstrip().startswith("#"):
        comment.insert(0, lines[above].lstrip().lstrip("# "))
        above -= 1
    return " ".join(comment)
