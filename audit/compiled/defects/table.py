"""All defects of generated Metal that mpsmith has found, with what was public about them on 22 November 2026.

The program of a defect is as small as possible. A verdict is that of torch 2.13.0 on the simulated device.
"""

from __future__ import annotations

from .decompositions import DECOMPOSITIONS
from .defect import Defect
from .logic import LOGIC
from .undefined import APPLE, UNDEFINED

DEFECTS: tuple[Defect, ...] = (*LOGIC, *DECOMPOSITIONS, *UNDEFINED, *APPLE)
