"""The overloads that few programs call and that therefore do not decide whether an operator works."""

from __future__ import annotations

import re
from collections.abc import Iterable

from .native_functions import operator_of

# The overloads that write into tensors which the caller passes have a name that ends so, or one of these.
_OUT_NAMES = frozenset(
    {
        *("L", "OutScalar_Other", "OutScalar_Self", "OutTensor", "Q", "U", "X", "a", "dim_max", "dim_min"),
        *("dim_values", "eigenvalues", "eigvals", "grad_input", "inverse", "out_", "out_mode", "out_rcond_tensor"),
        *("out_tol_tensor", "output", "result", "sign", "values", "values_stable"),
    }
)
# Their names end in this, although they are not out= forms.
_NOT_OUT = frozenset(
    {
        *("fbgemm_linear_fp16_weight.out", "fbgemm_linear_fp16_weight_fp32_activation.out"),
        *("mH.a", "mT.a", "matrix_H.a", "numpy_T.a", "_test_ambiguous_defaults.a"),
    }
)
_NAMED_TENSORS = re.compile(r"dimname|(^|_)names(_|$)", re.IGNORECASE)


def is_rare(overload: str) -> bool:
    """Whether few programs call an overload: an out= form, one with dimension names, or a deprecated one."""
    suffix = overload.partition(".")[2]
    if overload in _NOT_OUT:
        return False
    writes = suffix == "out" or suffix.endswith("_out") or suffix in _OUT_NAMES
    return writes or suffix == "deprecated" or _NAMED_TENSORS.search(suffix) is not None


def main_overloads(operator: str, overloads: Iterable[str]) -> list[str]:
    """The overloads that programs call: without the rare ones, and in-place ones only if there are no others."""
    usual = [overload for overload in overloads if not is_rare(overload)] or list(overloads)
    functional = [overload for overload in usual if operator_of(overload) == operator]
    return functional or usual
