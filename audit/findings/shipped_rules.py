"""Why a case with shipped kernels may come out wrong: what the specification leaves free, and defects of releases.

A rule names the kernels and the releases that it is true of, and holds for cases alone that launched one of them: in a
run of another release it neither explains nor is missed. A defect that is explained stays in the list of wrong results
of shipped kernels; what nobody has understood yet is unexplained, like anything else.
"""

from __future__ import annotations

from .rules import ExplainingRule
from .shipped_cpu import OF_THE_CPU
from .shipped_defects import DEFECTS
from .shipped_freedom import FREEDOM

SHIPPED_RULES: tuple[ExplainingRule, ...] = (*FREEDOM, *OF_THE_CPU, *DEFECTS)
