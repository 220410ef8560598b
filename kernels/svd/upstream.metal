#include "svd/svd.metal"
// What `_linalg_svd` calls of the family qr_reflectors: a patch brings all that its host code launches.
#include "shared/reflectors.metal"

REFLECTORS("svd_", float)
REFLECTORS("svd_", float2)
