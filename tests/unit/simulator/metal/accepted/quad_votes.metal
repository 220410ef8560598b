// out: 1 1 15 3
#include <metal_stdlib>
using namespace metal;
kernel void k(device float* out, uint i [[thread_position_in_grid]]) {
  const quad_vote votes = quad_ballot(i < 2), present = quad_active_threads_mask();
  const float results[] = {float(votes.any()), float(!votes.all()), float((quad_vote::vote_t)present),
                           float((quad_vote::vote_t)votes)};
  out[i] = results[i];
}
