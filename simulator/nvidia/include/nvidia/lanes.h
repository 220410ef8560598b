// metal_compute, metal_simdgroup and metal_quadgroup on an NVIDIA GPU, whose warps are Metal's SIMD groups.
//
// Lanes that a branch diverged reconverge behind it: statements and functions that contain SIMD-group operations hold an
// msl_region, and a lane that leaves one waits for all that entered it. Other diverged lanes reconverge in front of
// the next operation: the lanes of a block are its msl_lane_set. simulator/metal/reconvergence.py inserts both. So the
// lanes that reach an operation together are those that Metal means, and each operation names them in its mask.
#pragma once
#include "mathematics.h"
#include "msl/integer.h"
#include "msl/pack.h"
#include "msl/memory_order.h"
#include "msl/uniform.h"

#define MSL_LANE_INLINE inline __attribute__((always_inline, nodebug, convergent))

MSL_LANE_INLINE uint nvidia_active() { return __nvvm_activemask(); }
MSL_LANE_INLINE uint nvidia_lane() { return __nvvm_read_ptx_sreg_laneid(); }
#define msl_current_lane nvidia_lane()

struct msl_region {
  uint entered;
  MSL_LANE_INLINE msl_region() : entered(nvidia_active()) {}
  MSL_LANE_INLINE ~msl_region() { __nvvm_bar_warp_sync(entered); }
  MSL_LANE_INLINE bool reconverge(bool x) const {
    __nvvm_bar_warp_sync(entered);
    return x;
  }
};
struct msl_lane_set {
  uint lanes;
  MSL_LANE_INLINE msl_lane_set() : lanes(nvidia_active()) {}
  MSL_LANE_INLINE void reconverge() const { __nvvm_bar_warp_sync(lanes); }
  MSL_LANE_INLINE void update() { lanes = nvidia_active(); }
  // The lanes of a region that jump to the same label of a switch; `label` numbers the labels.
  template <class T, class F> MSL_LANE_INLINE T by_label(const msl_region& region, T x, F label) {
    lanes = __nvvm_match_any_sync_i32(region.entered, label(x));
    return x;
  }
};
// Around a statement by which some lanes of a set may leave its block.
struct msl_exit_scope {
  uint lanes;
  MSL_LANE_INLINE explicit msl_exit_scope(const msl_lane_set& set) : lanes(set.lanes) {}
  MSL_LANE_INLINE ~msl_exit_scope() { __nvvm_bar_warp_sync(lanes); }
};
MSL_LANE_INLINE uint msl_active() { return nvidia_active(); }
template <class T> MSL_LANE_INLINE T msl_reconverged(uint lanes, T x) {
  __nvvm_bar_warp_sync(lanes);
  return x;
}

namespace metal {
// bar.sync also orders the group's accesses to device memory, for any flags.
MSL_LANE_INLINE void threadgroup_barrier(mem_flags) { __syncthreads(); }
MSL_LANE_INLINE void threadgroup_barrier(mem_flags, thread_scope) { __syncthreads(); }
MSL_LANE_INLINE void simdgroup_barrier(mem_flags) { __nvvm_bar_warp_sync(nvidia_active()); }
MSL_LANE_INLINE void simdgroup_barrier(mem_flags f, thread_scope) { simdgroup_barrier(f); }
MSL_LANE_INLINE void atomic_thread_fence(mem_flags, memory_order, thread_scope = thread_scope_device) {
  __nvvm_membar_gl();
}

// A value in the lanes of a set. All lanes of the set must call the same functions.
template <class T> struct msl_lanes {
  T mine;
  uint mask, lane;
  MSL_LANE_INLINE T operator[](uint from) const {
    constexpr uint kWords = (sizeof(T) + 3) / 4;
    uint words[kWords] = {};
    __builtin_memcpy(words, &mine, sizeof(T));
    for (uint i = 0; i < kWords; i++) words[i] = __nvvm_shfl_sync_idx_i32(mask, words[i], from & 31, 31);
    T value;
    __builtin_memcpy(&value, words, sizeof(T));
    return value;
  }
  // The value of an inactive lane is undefined; on Apple silicon it is zero.
  MSL_LANE_INLINE T or_zero(uint from) const {
    T value = (*this)[from];
    return active(from) ? value : T{};
  }
  MSL_LANE_INLINE bool active(uint i) const { return i < MSL_SIMD_WIDTH && (mask >> i & 1); }
  template <class F> MSL_LANE_INLINE T fold(uint width, F f) const {
    if (mask == ~0u) {
      msl_lanes v = *this;
      for (uint step = width / 2; step; step /= 2) v.mine = f(v.mine, v[lane ^ step]);
      return v.mine;
    }
    uint begin = lane & ~(width - 1);
    T result = mine;
    bool any = false;
    for (uint i = 0; i < width; i++) {
      T other = (*this)[begin + i];
      if (active(begin + i)) result = any ? f(result, other) : other, any = true;
    }
    return result;
  }
};
template <class T> MSL_LANE_INLINE msl_lanes<T> msl_share(T x) { return {x, nvidia_active(), nvidia_lane()}; }

#define MSL_FOLD(prefix, W, name, expression) \
  template <class T> MSL_LANE_INLINE T prefix##_##name(T x) { \
    return msl_share(x).fold(W, [](T a, T b) __attribute__((always_inline)) { return (T)(expression); }); \
  }
#define MSL_SCAN(prefix, W, name, start, last, expression) \
  template <class T> MSL_LANE_INLINE T prefix##_prefix_##name(T x) { \
    auto v = msl_share(x); \
    T a = (T)(start); \
    for (uint i = 0; i < W; i++) { \
      uint from = (v.lane & ~(W - 1)) + i; \
      T b = v[from]; \
      if (from last v.lane && v.active(from)) a = (T)(expression); \
    } \
    return a; \
  }
#define MSL_LANE_OPERATIONS(prefix, W) \
  MSL_FOLD(prefix, W, sum, a + b) \
  MSL_FOLD(prefix, W, product, a* b) \
  MSL_FOLD(prefix, W, min, min(a, b)) \
  MSL_FOLD(prefix, W, max, max(a, b)) \
  MSL_FOLD(prefix, W, and, a& b) \
  MSL_FOLD(prefix, W, or, a | b) \
  MSL_FOLD(prefix, W, xor, a ^ b) \
  MSL_SCAN(prefix, W, inclusive_sum, 0, <=, a + b) \
  MSL_SCAN(prefix, W, exclusive_sum, 0, <, a + b) \
  MSL_SCAN(prefix, W, inclusive_product, 1, <=, a * b) \
  MSL_SCAN(prefix, W, exclusive_product, 1, <, a * b) \
  template <class T> MSL_LANE_INLINE T prefix##_shuffle(T x, ushort from) { \
    auto v = msl_share(x); \
    return v.or_zero((v.lane & ~(W - 1)) | (from & (W - 1))); \
  } \
  template <class T> MSL_LANE_INLINE T prefix##_broadcast(T x, ushort from) { return prefix##_shuffle(x, from); } \
  template <class T> MSL_LANE_INLINE T prefix##_broadcast_first(T x) { \
    auto v = msl_share(x); \
    uint begin = v.lane & ~(W - 1); \
    return v[begin + __builtin_ctz(v.mask >> begin)]; \
  } \
  template <class T> MSL_LANE_INLINE T prefix##_shuffle_up(T x, ushort d) { \
    auto v = msl_share(x); \
    T other = v.or_zero(v.lane - d); \
    return (v.lane & (W - 1)) >= d ? other : x; \
  } \
  template <class T> MSL_LANE_INLINE T prefix##_shuffle_down(T x, ushort d) { \
    auto v = msl_share(x); \
    T other = v.or_zero(v.lane + d); \
    return (v.lane & (W - 1)) + d < W ? other : x; \
  } \
  template <class T> MSL_LANE_INLINE T prefix##_shuffle_xor(T x, ushort d) { \
    auto v = msl_share(x); \
    return v.or_zero((v.lane ^ d) & (MSL_SIMD_WIDTH - 1)); \
  } \
  template <class T> MSL_LANE_INLINE T prefix##_shuffle_rotate_up(T x, ushort d) { \
    auto v = msl_share(x); \
    return v.or_zero((v.lane & ~(W - 1)) | ((v.lane - d) & (W - 1))); \
  } \
  template <class T> MSL_LANE_INLINE T prefix##_shuffle_rotate_down(T x, ushort d) { \
    auto v = msl_share(x); \
    return v.or_zero((v.lane & ~(W - 1)) | ((v.lane + d) & (W - 1))); \
  } \
  template <class T> MSL_LANE_INLINE T prefix##_shuffle_and_fill_up(T x, T fill, ushort d) { \
    uint k = nvidia_lane() & (W - 1), from = (nvidia_lane() & ~(W - 1)) | ((k - d) & (W - 1)); \
    T up = msl_share(x).or_zero(from), filling = msl_share(fill).or_zero(from); \
    return k >= d ? up : filling; \
  } \
  template <class T> MSL_LANE_INLINE T prefix##_shuffle_and_fill_down(T x, T fill, ushort d) { \
    uint k = nvidia_lane() & (W - 1), from = (nvidia_lane() & ~(W - 1)) | ((k + d) & (W - 1)); \
    T down = msl_share(x).or_zero(from), filling = msl_share(fill).or_zero(from); \
    return k + d < W ? down : filling; \
  } \
  MSL_LANE_INLINE bool prefix##_all(bool b) { return prefix##_and((uint)b) != 0; } \
  MSL_LANE_INLINE bool prefix##_any(bool b) { return prefix##_or((uint)b) != 0; } \
  MSL_LANE_INLINE bool prefix##_is_first() { \
    uint lane = nvidia_lane(), begin = lane & ~(W - 1); \
    return lane == begin + __builtin_ctz(nvidia_active() >> begin); \
  }
MSL_LANE_OPERATIONS(simd, MSL_SIMD_WIDTH)
MSL_LANE_OPERATIONS(quad, 4u)
#undef MSL_LANE_OPERATIONS
#undef MSL_FOLD
#undef MSL_SCAN

#define MSL_FILL(name, from_below) \
  template <class T> MSL_LANE_INLINE T simd_shuffle_and_fill_##name(T x, T fill, ushort d, ushort modulo) { \
    uint k = nvidia_lane() & (modulo - 1u), first = nvidia_lane() & ~(modulo - 1u); \
    uint from = first | ((from_below ? k - d : k + d) & (modulo - 1u)); \
    T moved = msl_share(x).or_zero(from), filling = msl_share(fill).or_zero(from); \
    return (from_below ? k >= d : k + d < modulo) ? moved : filling; \
  }
MSL_FILL(up, true)
MSL_FILL(down, false)
#undef MSL_FILL

struct simd_vote {
  typedef ulong vote_t;
  ulong votes;
  uint active;
  simd_vote() = default;
  explicit simd_vote(ulong v) : votes(v), active(0xffffffffu) {}
  explicit operator vote_t() const { return votes; }
  bool all() const { return (uint)votes == active; }
  bool any() const { return votes != 0; }
};
MSL_LANE_INLINE simd_vote simd_ballot(bool b) {
  simd_vote r;
  r.active = nvidia_active();
  r.votes = __nvvm_vote_ballot_sync(r.active, b);
  return r;
}
MSL_LANE_INLINE simd_vote simd_active_threads_mask() { return simd_ballot(true); }
} // namespace metal
