#include "shared/fractional.metal"

FRACTIONAL_MAX_POOL("fractional_max_pool2d", float, 2)
FRACTIONAL_MAX_POOL("fractional_max_pool2d", half, 2)
FRACTIONAL_MAX_POOL("fractional_max_pool2d", bfloat, 2)
