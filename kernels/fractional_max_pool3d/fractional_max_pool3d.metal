#include "shared/fractional.metal"

FRACTIONAL_MAX_POOL("fractional_max_pool3d", float, 3)
FRACTIONAL_MAX_POOL("fractional_max_pool3d", half, 3)
FRACTIONAL_MAX_POOL("fractional_max_pool3d", bfloat, 3)
