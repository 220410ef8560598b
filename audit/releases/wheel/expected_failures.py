"""The failures on mps that PyTorch's tests expect, from the sources of any release.

Two sources list them: `common_mps.py`, whose functions mark OpInfos for a version of macOS, and the OpInfos.
Both are read from the syntax tree (`python_subset`); the tests that use them are not needed.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ....errors import MpsmithError
from ...model.selection import DTYPES
from .opinfo_declarations import OpInfoDeclaration
from .opinfo_dtypes import dtype_of
from .python_subset import Subset

# The functions of common_mps.py that mark OpInfos, and the leg of the tests that each of them is for.
STAGES: Mapping[str, str] = {
    "mps_ops_modifier": "forward",
    "mps_ops_grad_modifier": "backward",
    "mps_ops_error_inputs_modifier": "error inputs",
}

# The version of macOS for which the lists are evaluated unless another one is asked for.
MACOS = 15.0

# The list of operators that have no kernel at all. The others are for wrong or undefined results.
UNIMPLEMENTED = "UNIMPLEMENTED_XFAILLIST"


@dataclass(frozen=True)
class ExpectedFailure:
    """One mark: tests of an OpInfo that PyTorch expects to fail (or skips) on mps.

    `test` is the OpInfo's name with its variant, as `nn.functional.interpolatearea`; `name` is the name alone.
    `listed_in` is the name of the list, or `OpInfo` for a mark that the OpInfo carries itself. `dtypes` are those of
    the mark that a tensor on mps can have and that the OpInfo tests, in the order of DTYPES.
    """

    test: str
    name: str
    stage: str
    skipped: bool
    listed_in: str
    dtypes: tuple[str, ...]

    @property
    def unimplemented(self) -> bool:
        """Whether PyTorch says that the operator is not implemented, not merely that a result differs."""
        return self.listed_in == UNIMPLEMENTED


@dataclass(frozen=True)
class ExpectedFailures:
    """All marks of a release for one version of macOS, and the lines that could not be evaluated.

    `lists` has the lists as they are written, by stage and name: for each test its dtypes, None for all. They may
    include dtypes that the OpInfo does not test, which cause no mark.
    """

    macos: float
    marks: tuple[ExpectedFailure, ...]
    lists: Mapping[tuple[str, str], Mapping[str, tuple[str, ...] | None]]
    problems: tuple[str, ...]


@dataclass(frozen=True)
class _Info:
    """The `DecorateInfo` of the evaluated code."""

    kind: str
    dtypes: Any = None


@dataclass
class _Op:
    """The OpInfo of the evaluated code; `name` joins name and variant, as the keys of the lists do."""

    name: str
    variant_test_name: str = ""


def read_expected_failures(
    common_mps: bytes | str, opinfos: Sequence[OpInfoDeclaration], macos: float = MACOS
) -> ExpectedFailures:
    """Evaluate the lists of a common_mps.py for a version of macOS such as 14.4.

    `opinfos` are the OpInfos of the same release; a mark for every dtype is expanded with theirs.
    Raises MpsmithError when the text is not Python.
    """
    try:
        tree = ast.parse(common_mps)
    except (SyntaxError, ValueError) as error:
        raise MpsmithError(f"common_mps.py is not valid Python: {error}") from None
    marks: list[ExpectedFailure] = []
    problems: list[str] = []
    lists: dict[tuple[str, str], Mapping[str, tuple[str, ...] | None]] = {}
    for function in _modifiers(tree):
        stage = STAGES[function.name]
        names, _, noted = _run(function, [], macos)
        written = dict(_written_lists(names))
        lists.update({(stage, name): entries for name, entries in written.items()})
        # The sources make some OpInfos in loops, which `opinfos` lacks; the lists name them.
        by_test = {opinfo.test: opinfo for opinfo in opinfos}
        tests = dict.fromkeys([*by_test, *(test for entries in written.values() for test in entries)])
        marks.extend(_marks_of(function, by_test, list(tests), macos))
        problems.extend(f"common_mps.py, {note}" for note in noted)
    return ExpectedFailures(macos, tuple(marks), lists, tuple(problems))


def _modifiers(tree: ast.Module) -> Iterator[ast.FunctionDef]:
    """The functions under `if torch.backends.mps.is_available()`; those in its `else` do nothing."""
    for statement in tree.body:
        if isinstance(statement, ast.If) and "mps.is_available" in ast.unparse(statement.test):
            for function in statement.body:
                if isinstance(function, ast.FunctionDef) and function.name in STAGES:
                    yield function


def _marks_of(
    function: ast.FunctionDef, by_test: Mapping[str, OpInfoDeclaration], tests: Sequence[str], macos: float
) -> Iterator[ExpectedFailure]:
    names, decorated, _ = _run(function, tests, macos)
    for test, info in decorated:
        opinfo = by_test.get(test)
        dtypes = _in_scope(info.dtypes, opinfo)
        # Every OpInfo is marked for float64 and complex128, which no tensor on mps has.
        if dtypes:
            yield ExpectedFailure(
                test=test,
                name=opinfo.name if opinfo else test,
                stage=STAGES[function.name],
                skipped=info.kind == "skip",
                listed_in=_list_holding(names, test, info.dtypes),
                dtypes=dtypes,
            )


def _run(
    function: ast.FunctionDef, tests: Sequence[str], macos: float
) -> tuple[Mapping[str, Any], list[tuple[str, _Info]], list[str]]:
    """Run a modifier on these tests. Return the names it bound, the decorators it added, and what was not evaluated."""
    decorated: list[tuple[str, _Info]] = []

    def add_decorator(op: _Op, info: _Info) -> None:
        decorated.append((op.name, info))

    arguments = {"ops": [_Op(test) for test in tests], "device_type": "mps", "xfail_exclusion": [], "sparse": False}
    calls = {**_calls(macos), "addDecorator": add_decorator}
    subset = Subset({"MACOS_VERSION": macos, **arguments}, calls, _attribute)
    subset.run(function.body)
    return subset.names, decorated, subset.problems


def _written_lists(names: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, tuple[str, ...] | None]]]:
    """The dictionaries with capitalized names: the dtypes of each test."""
    for name, value in names.items():
        if name.isupper() and isinstance(value, dict):
            yield name, {test: None if dtypes is None else tuple(dtypes) for test, dtypes in value.items()}


def _calls(macos: float) -> dict[str, Any]:
    def decorate_info(kind: str, *_: str, dtypes: Any = None, **__: Any) -> _Info:
        return _Info(kind, dtypes)

    def newer_than_13(minor: int = 0) -> bool:
        return macos >= 13 + minor / 10

    return {
        "DecorateInfo": decorate_info,
        "unittest.skip": lambda reason="": "skip",
        "torch.backends.mps.is_macos13_or_newer": newer_than_13,
        "torch.backends.mps.is_macos_or_newer": lambda major, minor: macos >= major + minor / 10,
        "set": set,
        "list": list,
        "dict": dict,
        "sorted": sorted,
    }


def _attribute(path: str) -> str:
    special = {"unittest.expectedFailure": "expected failure", "unittest.skip": "skip"}
    return special.get(path) or dtype_of(path)


def _in_scope(dtypes: Iterable[str] | None, opinfo: OpInfoDeclaration | None) -> tuple[str, ...]:
    """The dtypes of a mark in the order of DTYPES; None means all that the OpInfo tests, or all if that is unknown."""
    tested = opinfo.dtypes if opinfo and opinfo.dtypes is not None else frozenset(DTYPES)
    wanted = tested if dtypes is None else frozenset(dtypes) & tested
    return tuple(dtype for dtype in DTYPES if dtype in wanted)


def _list_holding(names: Mapping[str, Any], test: str, dtypes: Any) -> str:
    """The list that a mark comes from: a dictionary whose entry for the test is this very object, or a set.

    Up to 2.14 the set of operators with complex numbers names those that work, so absence from it is the mark.
    """
    lists = {name: value for name, value in names.items() if name.isupper()}
    for name, value in lists.items():
        if isinstance(value, dict) and test in value and value[test] is dtypes:
            return name
    sets = {name: value for name, value in lists.items() if isinstance(value, set)}
    holding = [name for name, value in sets.items() if test in value]
    positive = [name for name in sets if name.startswith("SUPPORTED")]
    return next(iter([*holding, *positive]), "unnamed list")
