"""Models of known defects, which predict wrong results; rules name them."""

from __future__ import annotations

from .complex_functions import COMPLEX_FUNCTIONS
from .conversions import CONVERSIONS, CONVERSIONS_OF_HOST_CODE
from .cpu_results import CPU_RESULTS
from .embedding_bags import EMBEDDING_BAGS
from .factorizations import FACTORIZATIONS, FACTORIZATIONS_OF_HOST_CODE
from .forms import FORMS
from .given_tensors import GIVEN_TENSORS
from .graph_keys import GRAPH_KEYS
from .graph_rounding import GRAPH_ROUNDING
from .graphs import GRAPHS
from .grid_sampling import GRID_SAMPLING
from .memory_order import MEMORY_ORDER
from .normalizations import NORMALIZATIONS
from .optimizers import OPTIMIZERS, OPTIMIZERS_OF_HOST_CODE
from .overflows import OVERFLOWS
from .places import PLACES
from .prediction import Prediction
from .real_functions import REAL_FUNCTIONS
from .reductions import REDUCTIONS
from .rounded_results import ROUNDED_RESULTS
from .scans import SCANS
from .subnormals import SUBNORMALS
from .windows import WINDOWS

PREDICTIONS: tuple[Prediction, ...] = (
    *REAL_FUNCTIONS,
    *COMPLEX_FUNCTIONS,
    *WINDOWS,
    *GRID_SAMPLING,
    *REDUCTIONS,
    *NORMALIZATIONS,
    *SCANS,
    *SUBNORMALS,
    *MEMORY_ORDER,
    *FACTORIZATIONS,
    *CPU_RESULTS,
    *CONVERSIONS,
    *PLACES,
    *OPTIMIZERS,
    *ROUNDED_RESULTS,
    *OVERFLOWS,
)

# Tried, too, where PyTorch's own host code computes: on a real device, and with --host-code.
OF_HOST_CODE: tuple[Prediction, ...] = (
    *GRAPHS,
    *GRAPH_ROUNDING,
    *GRAPH_KEYS,
    *GIVEN_TENSORS,
    *FORMS,
    *EMBEDDING_BAGS,
    *CONVERSIONS_OF_HOST_CODE,
    *OPTIMIZERS_OF_HOST_CODE,
    *FACTORIZATIONS_OF_HOST_CODE,
)
