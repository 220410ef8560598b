"""Finds the groups that a user means by an operator's name: each source spells it differently.

An OpInfo is called "nn.functional.softshrink" or "linalg.svd", a module "nn.Softshrink", and a schema's group is called
as the overload, "softshrink", "softshrink.out" or "pow_.Scalar".
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Iterable
from functools import cache

import torch

from ...errors import MpsmithError, near

FUNCTIONAL = "nn.functional."
_IS_A_PATTERN = re.compile(r"[*?\[]")
_WORD_BEGINS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


def matching(pattern: str, names: Iterable[str]) -> set[str]:
    """The names of groups that match a pattern.

    A name ("pow", "softshrink", "linalg.svd", "nn.functional.softshrink", with "aten::" or without) matches all groups
    of the operator, from every source, including its in-place and out= overloads. An overload ("pow.Tensor_Tensor")
    matches its own groups. With "aten::" it also matches the groups of its operator that name no overload, because
    they may call it. A shell pattern ("linalg.*") matches all such names. Raises MpsmithError for a pattern that
    matches nothing.
    """
    names = set(names)
    wanted = pattern.removeprefix("aten::")
    matches = {name for spelling in _also_written(wanted, names) for name in _spelled(names, spelling)}
    if not matches or pattern.startswith("aten::"):
        matches |= _groups_of_overload(wanted, names)
    if not matches:
        spellings = {form for name in names for form in _spellings(name)}
        hint = near(wanted, spellings, "`mpsmith coverage --operators` lists all operators")
        raise MpsmithError(f"no cases for operator {pattern!r}{hint}")
    return matches


def _also_written(wanted: str, names: set[str]) -> set[str]:
    """The spellings that sources use for `wanted`: linalg.svd is linalg_svd in a schema.

    For a shell pattern, only the matching functions lose "nn.functional.": "nn.functional.*" would otherwise be "*".
    """
    if _operator_of(wanted):
        return {wanted}
    functions = {name for name in {wanted, *fnmatch.filter(names, wanted)} if _IS_A_PATTERN.search(name) is None}
    return {wanted, wanted.replace(".", "_")} | {name.removeprefix(FUNCTIONAL) for name in functions}


def _spelled(names: set[str], pattern: str) -> set[str]:
    return {name for name in names if any(fnmatch.fnmatchcase(form, pattern) for form in _spellings(name))}


def _groups_of_overload(wanted: str, names: set[str]) -> set[str]:
    """The groups that name no overload and whose operator is that of the overload `wanted`, or is implemented by it.

    `aten::_softmax` implements softmax, `aten::gelu_backward` the gradient of gelu.
    """
    operator = _operator_of(wanted)
    if not operator:
        return set()
    served = {operator, operator.strip("_"), operator.strip("_").removesuffix("_backward")}
    unnamed = {name for name in names if "." not in name or not _operator_of(name)}
    return {name for spelling in served for name in _spelled(unnamed, spelling)}


@cache
def _spellings(name: str) -> frozenset[str]:
    """Everything that a user may call the operator of groups with this name."""
    forms = {name, name.replace(".", "_")}
    parts = name.split(".")
    if parts[0] == "nn":
        forms |= {parts[-1], parts[-1].lower(), _WORD_BEGINS.sub("_", parts[-1]).lower()}
    elif "aten" in parts:  # torch.ops.aten.NAME.OVERLOAD
        forms |= set(parts[parts.index("aten") + 1 :][:1])
    elif operator := _operator_of(name):
        forms |= {operator, operator if operator.endswith("__") else operator.removesuffix("_")}
    return frozenset(forms)


@cache
def _operator_of(name: str) -> str:
    """The ATen operator of the overload `name`, "pow_" for "pow_.Scalar"; "" if there is none."""
    operator, _, overload = name.partition(".")
    packet = getattr(torch.ops.aten, operator, None)
    return operator if packet is not None and (overload or "default") in [*packet.overloads(), "default"] else ""
