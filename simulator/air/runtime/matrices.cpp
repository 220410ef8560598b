// 8x8 matrices: a lane has two adjacent elements of a row (the layout of simulator/metal/include/msl/simdgroup_matrix.h).
#include "lanes.h"

AIR_LOCAL u32 row_of(u32 lane) { return (lane / 4 & 4) + lane / 2 % 4; }
AIR_LOCAL u32 column_of(u32 lane) { return (lane / 4 & 2) * 2 + lane % 2 * 2; }
AIR_LOCAL u32 lane_at(u32 row, u32 column) { return row % 4 * 2 + row / 4 * 16 + column / 4 * 8 + column % 4 / 2; }

AIR f32 airrt_matrix_diagonal(f32 value, u32 k) {
  u32 lane = msl_current_lane;
  return row_of(lane) == column_of(lane) + k ? value : 0;
}
AIR u64 airrt_matrix_offset(u64 stride, u64 x, u64 y, bool transposed, u32 k) {
  u64 row = row_of(msl_current_lane), column = column_of(msl_current_lane) + k;
  return transposed ? (y + column) * stride + x + row : (y + row) * stride + x + column;
}

struct Factors { f32 a[2], b[2]; };
// The lane's two elements of a * b + c; each product is fused with its addition, in order.
AIR void airrt_matrix_multiply_accumulate(f32 a0, f32 a1, f32 b0, f32 b1, f32 c0, f32 c1, f32* result) {
  auto v = Lanes<Factors>::share({{a0, a1}, {b0, b1}});
  u32 row = row_of(v.lane), column = column_of(v.lane);
  f32 sum0 = c0, sum1 = c1;
  for (u32 k = 0; k < 8; k++) {
    f32 a = v[lane_at(row, k)].a[k & 1];
    const Factors& b = v[lane_at(k, column)];
    sum0 = __builtin_fmaf(a, b.b[0], sum0);
    sum1 = __builtin_fmaf(a, b.b[1], sum1);
  }
  result[0] = sum0;
  result[1] = sum1;
}
