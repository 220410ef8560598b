// 8x8 matrices: a lane has two adjacent elements of a row (include/nvidia/matrix.h).
#include "runtime.h"

using metal::msl_share;

AIR f32 airrt_matrix_diagonal(f32 value, u32 k) {
  u32 lane = nvidia_lane();
  return metal::nvidia_row(lane) == metal::nvidia_column(lane) + k ? value : 0;
}
AIR u64 airrt_matrix_offset(u64 stride, u64 x, u64 y, bool transposed, u32 k) {
  return metal::nvidia_offset(k, stride, metal::ulong2(x, y), transposed);
}
// The lane's two elements of a * b + c; each product is fused with its addition, in order.
AIR void airrt_matrix_multiply_accumulate(f32 a0, f32 a1, f32 b0, f32 b1, f32 c0, f32 c1, f32* result) {
  auto even = msl_share(a0), odd = msl_share(a1), left = msl_share(b0), right = msl_share(b1);
  u32 row = metal::nvidia_row(even.lane), column = metal::nvidia_column(even.lane);
  for (u32 k = 0; k < 8; k++) {
    u32 of_a = metal::nvidia_lane_at(row, k), of_b = metal::nvidia_lane_at(k, column);
    f32 a = k & 1 ? odd[of_a] : even[of_a];
    c0 = __builtin_fmaf(a, left[of_b], c0);
    c1 = __builtin_fmaf(a, right[of_b], c1);
  }
  result[0] = c0;
  result[1] = c1;
}
