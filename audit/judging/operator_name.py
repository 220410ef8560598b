"""The name of the operator that a case calls, where its call has one."""

from __future__ import annotations

import functools
import re

from ..model.case import Case

_NAME = re.compile(r"^(?:aten::)?(?:_foreach_)?(\w+?)_?(?:\.\w+)?$")


def operator_name(case: Case) -> str:
    """ "neg" for `torch.neg`, `Tensor.neg_`, "aten::neg.out" and `torch._foreach_neg`; "" for a call without a name."""
    return plain_name(getattr(case.call, "__name__", ""))


@functools.cache  # an audit asks for each case several times
def plain_name(name: str) -> str:
    """The operator that a call or an overload is named after: "neg" for "aten::neg_.out"; "" for another name."""
    match = _NAME.match(name)
    return "" if match is None else match[1]
