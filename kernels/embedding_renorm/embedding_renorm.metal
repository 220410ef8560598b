#include "shared/lanes.metal"
#include "shared/reduce.metal"
#include "shared/report.metal"
#include "shared/row.metal"

template <typename T> inline float magnitude(T x) { return abs(float(x)); }
// Divided by the larger part, so that no square overflows or vanishes.
template <> inline float magnitude(float2 x) {
  const float2 parts = abs(x);
  const float larger = max(parts.x, parts.y);
  const float2 shares = parts / larger;
  return larger > 0.0f && larger < INFINITY && !is_nan(parts.x + parts.y)
      ? larger * precise::sqrt(shares.x * shares.x + shares.y * shares.y)
      : larger == INFINITY ? larger
                           : parts.x + parts.y;
}

template <typename T> inline float with_square(float sum, T x) { return fma(float(x), float(x), sum); }
// A number with an infinite part is infinite, even if the other part is NaN.
template <> inline float with_square(float sum, float2 x) {
  return isinf(x.x) || isinf(x.y) ? sum + INFINITY : fma(x.x, x.x, fma(x.y, x.y, sum));
}

template <typename T> inline T scaled(T x, float scale) { return T(float(x) * scale); }
// As by a complex number without an imaginary part: zero times an infinity is NaN.
template <> inline float2 scaled(float2 x, float scale) {
  const float2 y = x * scale;
  return float2(isfinite(x.y) ? y.x : NAN, isfinite(x.x) ? y.y : NAN);
}

// Norms but the Euclidean one: what they are of no elements, and with one of magnitude x more.
struct number_of_nonzeros {
  static constexpr constant float START = 0.0f;
  static float with(float norm, float x, float) { return norm + (x != 0.0f ? 1.0f : 0.0f); }
};
struct sum_of_magnitudes {
  static constexpr constant float START = 0.0f;
  static float with(float norm, float x, float) { return norm + x; }
};
struct sum_of_powers {
  static constexpr constant float START = 0.0f;
  static float with(float norm, float x, float p) { return norm + precise::pow(x, p); }
};
struct largest_magnitude {
  static constexpr constant float START = 0.0f;
  static float with(float norm, float x, float) { return max_of::combine(norm, x); }
};
struct smallest_magnitude {
  static constexpr constant float START = INFINITY;
  static float with(float norm, float x, float) { return min_of::combine(norm, x); }
};

// What a thread knows of the elements that it takes (shared/row.metal).
template <typename NORM> struct norm_of_share {
  float norm;
  float p;

  template <typename T> void take(T x) { norm = NORM::with(norm, magnitude(x), p); }
  template <typename T> void take_several(thread const T (&x)[ROW_LOADS]) {
    for (uint k = 0; k < ROW_LOADS; ++k) {
      take(x[k]);
    }
  }
};

// A thread's part of a row: vectors of W neighbours, every `step`-th of `count`. Several are on their way at a time, and
// the first of them stay in registers until they are scaled: a short row is read once. Loops over them have to be
// unrolled, for what is found by an index that is not known lies in memory. Where W is 1 columns have any stride.
template <typename T, typename I, uint W> struct part_of_row {
  static constexpr constant uint HELD = 8;
  device T* row;
  I stride;
  I count;
  I first;
  I step;
  lanes<T, W> held[HELD];

  I at(I begin, uint k) const { return begin + first + I(k) * step; }
  device T* place(I vector) const { return row + (W == 1 ? vector * stride : vector * I(W)); }

  void load(I begin) {
#pragma unroll
    for (uint k = 0; k < HELD; ++k) {
      if (at(begin, k) < count) {
        held[k] = lanes<T, W>::load(place(at(begin, k)));
      }
    }
  }

  // Of the thread's elements; the first ones are held then, for they come last.
  float sum_of_squares() {
    float sum = 0.0f;
    for (I next = step * HELD;; next += step * HELD) {
      const bool is_last = next >= count;
      const I begin = is_last ? I(0) : next;
      load(begin);
#pragma unroll
      for (uint k = 0; k < HELD; ++k) {
        if (at(begin, k) < count) {
          for (uint e = 0; e < W; ++e) {
            sum = with_square(sum, held[k].value[e]);
          }
        }
      }
      if (is_last) {
        return sum;
      }
    }
  }

  void scale(float factor, bool is_held) {
    for (I begin = 0; begin < count; begin += step * HELD) {
      if (begin > 0 || !is_held) {
        load(begin);
      }
#pragma unroll
      for (uint k = 0; k < HELD; ++k) {
        if (at(begin, k) < count) {
          for (uint e = 0; e < W; ++e) {
            held[k].value[e] = scaled(held[k].value[e], factor);
          }
          held[k].store(place(at(begin, k)));
        }
      }
    }
  }
};

// A norm of the elements first, first + step, ... of a row: those that part_of_row has where W is 1. It takes numbers: a
// function that is called with the part would keep all that the part holds in memory.
template <typename NORM, typename T>
inline float norm_of_part(device const T* row, ulong count, ulong stride, uint first, uint step, float p) {
  norm_of_share<NORM> share = {NORM::START, p};
  take_along(share, row, count, stride, ulong(first), ulong(step));
  return share.norm;
}

// The norms of two parts of a row together; `which` as below.
inline float together(float a, float b, float which) {
  return !isinf(which) ? a + b : which > 0.0f ? max_of::combine(a, b) : min_of::combine(a, b);
}

// The norm of a row from those of the threads' parts, in every thread of a group of whole SIMD groups. These put theirs
// together without a barrier, and one SIMD group alone waits nowhere.
inline float together_in_group(float norm, float which, threadgroup float* scratch, uint thread_index, uint threads) {
  constexpr uint SIMD_WIDTH = 32;
  for (ushort distance = SIMD_WIDTH / 2; distance > 0; distance /= 2) {
    norm = together(norm, simd_shuffle_xor(norm, distance), which);
  }
  if (threads > SIMD_WIDTH) {
    if (thread_index % SIMD_WIDTH == 0) {
      scratch[thread_index / SIMD_WIDTH] = norm;
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    norm = scratch[0];
    for (uint s = 1; s < threads / SIMD_WIDTH; ++s) {
      norm = together(norm, scratch[s], which);
    }
  }
  return norm;
}

// A group an index, of sorted indices; only the first of equal ones works, the others have rows of no elements. A row
// whose norm is beyond the limit is scaled to it. g: columns, rows, and the strides of row and column. p: the limit and
// which norm. W: how many neighbours are moved at a time, in the Euclidean norm, where each row consists of so many and
// starts at a multiple of 16 bytes: one by one halves take as long as floats. Each thread scales what it has read itself,
// so that none waits for others but for their norms. I: 32 bits where the columns of a row fit.
template <typename T, typename I, uint W>
kernel void embedding_renorm(
    device T* weight [[buffer(0)]],
    device const long* indices [[buffer(1)]],
    constant float* p [[buffer(2)]],
    constant long* g [[buffer(3)]],
    REPORT_BUFFER(4) uint2 group [[threadgroup_position_in_grid]],
    uint thread_index [[thread_index_in_threadgroup]],
    uint2 group_size [[threads_per_threadgroup]]) {
  threadgroup float scratch[8];
  const uint i = group.y, threads = group_size.x;
  const long index = indices[i], before = i == 0 ? -1 : indices[i - 1], columns = g[0];
  const bool is_row = index >= 0 && index < g[1];
  if (!is_row && thread_index == 0) {
    REPORT("embedding_renorm_(): index ", index, " is out of range of ", g[1], " rows");
  }
  const bool works = is_row && index != before;
  part_of_row<T, I, W> part;
  part.row = weight + (works ? index * g[2] : 0);
  part.stride = I(g[3]);
  part.count = works ? I(columns) / W : I(0);
  part.first = I(thread_index);
  part.step = I(threads);
  const float limit = p[0];
  const float which = columns == 1 && p[1] != 0.0f ? 1.0f : p[1];  // of one number every norm is its magnitude
  const ulong count = ulong(part.count), stride = ulong(part.stride);
  float norm;
  if (W > 1 || which == 2.0f) {
    norm = part.sum_of_squares();
  } else if (which == 1.0f) {
    norm = norm_of_part<sum_of_magnitudes>(part.row, count, stride, thread_index, threads, which);
  } else if (which == 0.0f) {
    norm = norm_of_part<number_of_nonzeros>(part.row, count, stride, thread_index, threads, which);
  } else if (!isinf(which)) {
    norm = norm_of_part<sum_of_powers>(part.row, count, stride, thread_index, threads, which);
  } else if (which > 0.0f) {
    norm = norm_of_part<largest_magnitude>(part.row, count, stride, thread_index, threads, which);
  } else {
    norm = norm_of_part<smallest_magnitude>(part.row, count, stride, thread_index, threads, which);
  }
  norm = together_in_group(norm, which, scratch, thread_index, threads);
  if (which == 2.0f) {
    norm = precise::sqrt(norm);
  } else if (which != 0.0f && which != 1.0f && !isinf(which)) {
    norm = precise::pow(norm, 1.0f / which);
  }
  if (norm > limit) {
    part.scale(limit / (norm + 1e-7f), which == 2.0f);
  }
}

#define EMBEDDING_RENORM_IN(NAME, T, I, W) \
  template [[host_name("embedding_renorm_" NAME #T)]] kernel void embedding_renorm<T, I, W>( \
      device T*, device const long*, constant float*, constant long*, REPORT_TYPE uint2, uint, uint2);
#define EMBEDDING_RENORM(T) \
  EMBEDDING_RENORM_IN("", T, uint, 1) \
  EMBEDDING_RENORM_IN("64_", T, ulong, 1) \
  EMBEDDING_RENORM_IN("vectors_", T, uint, lane_count<T>)
EMBEDDING_RENORM(float)
EMBEDDING_RENORM(half)
EMBEDDING_RENORM(bfloat)
EMBEDDING_RENORM(float2)
