"""Why a case may fail without anything new being wrong: named rules, each with a reason for a stranger.

The first rule that matches explains. Rules about shipped kernels name the kernels and the releases that they hold
for, and match only cases that launched one of those kernels. A defect that is explained stays in the list of wrong
results of shipped kernels.
"""

from __future__ import annotations

from .not_compared import REFERENCE, SIMULATED, SKIPS
from .own_kernels import OWN_KERNEL_RULES
from .refused_dtypes import REFUSALS
from .rounding import ROUNDING
from .rule import ExplainingRule
from .shipped_cpu_defects import CPU_DEFECTS
from .shipped_defects import SHIPPED_DEFECTS
from .shipped_unspecified import UNSPECIFIED
from .torch_behaviour import KERNELS, TORCH

RULES: tuple[ExplainingRule, ...] = (*KERNELS, *TORCH, *REFUSALS, *ROUNDING, *SIMULATED, *REFERENCE, *SKIPS)
SHIPPED_RULES: tuple[ExplainingRule, ...] = (*UNSPECIFIED, *CPU_DEFECTS, *SHIPPED_DEFECTS)
ALL_RULES: tuple[ExplainingRule, ...] = (*RULES, *OWN_KERNEL_RULES, *SHIPPED_RULES)
