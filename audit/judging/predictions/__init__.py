"""What known defects make of a case, each a model that rules name."""

from __future__ import annotations

from .complex_functions import COMPLEX_FUNCTIONS
from .normalizations import NORMALIZATIONS
from .prediction import Prediction
from .real_functions import REAL_FUNCTIONS
from .reductions import REDUCTIONS
from .scans import SCANS
from .subnormals import SUBNORMALS
from .windows import WINDOWS

PREDICTIONS: tuple[Prediction, ...] = (
    *REAL_FUNCTIONS,
    *COMPLEX_FUNCTIONS,
    *WINDOWS,
    *REDUCTIONS,
    *NORMALIZATIONS,
    *SCANS,
    *SUBNORMALS,
)
