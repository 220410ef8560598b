#include "shared/reflectors.metal"

REFLECTORS("qr_", float)
REFLECTORS("qr_", float2)
