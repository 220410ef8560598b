"""The key of a group of cases: what is generated, executed and recorded together. Imports no torch."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from .selection import DTYPES

# Under torch.compile, with sizes that are numbers in the generated code, or that are symbols.
COMPILED, DYNAMIC = "compiled", "dynamic"
COMPILED_MODES = (COMPILED, DYNAMIC)
# A tensor in the description of a case's inputs: its dtype.
_TENSOR = re.compile(r"\b([a-z]+\d*)\[")


@dataclass(frozen=True)
class GroupKey:
    """All cases of one operator entry and dtype in one mode; generated together, identified by position.

    `operator` is the name its source gives ("nn.functional.softshrink"), `variant` the source's variant of it.
    `mode` is "fallback" (PYTORCH_ENABLE_MPS_FALLBACK=1) or "strict", or one of COMPILED_MODES.
    """

    source: str
    operator: str
    variant: str
    dtype: str
    mode: str

    @property
    def label(self) -> str:
        """For people: source:operator[.variant]:dtype."""
        name = f"{self.operator}.{self.variant}" if self.variant else self.operator
        return f"{self.source}:{name}:{self.dtype}"

    def label_of(self, position: int) -> str:
        """The label of a case of the group, with position and mode: equal in all runs with the same settings."""
        return f"{self.label}:{position}" + ("" if self.mode == "fallback" else f":{self.mode}")


def own_dtype(group_dtype: str, source: str, tensors: Sequence[str]) -> str:
    """The dtype that a case is evidence about, from its tensors' dtypes: that of its group if a tensor has it.

    A recorded call may have no such tensor. Then it is the first floating dtype, else the first of all. The parameters
    of a module are not among its tensors.
    """
    if group_dtype in tensors or not tensors or "module" in source:
        return group_dtype
    return next((dtype for dtype in tensors if "int" not in dtype and dtype != "bool"), tensors[0])


def dtype_of_case(group: GroupKey, inputs: str) -> str:
    """The dtype that a case is evidence about, from the description of its inputs: an argument's, or `own_dtype`."""
    if f"torch.{group.dtype}" in inputs:
        return group.dtype
    return own_dtype(group.dtype, group.source, [dtype for dtype in _TENSOR.findall(inputs) if dtype in DTYPES])
