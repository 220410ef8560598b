#include "shared/reduce.metal"
#include "shared/report.metal"

// Numbers of the reductions, as segment_reduce.py counts them.
constant constexpr long SUM = 0, MEAN = 1, MAXIMUM = 2, MINIMUM = 3, PRODUCT = 4;

// What the host passes: segments a row, numbers a row, inner elements of each number, the reduction, and whether
// segments that leave the row, or leave something of it over, are reported, and whether the start of the first segment
// is given; it is zero otherwise.
struct segments {
  long count;
  long size;
  long inner;
  long reduction;
  bool checked;
  bool has_start;
  segments(constant long* g)
      : count(g[0]), size(g[1]), inner(g[2]), reduction(g[3]), checked(g[4] != 0), has_start(g[5] != 0) {}
};

// Where a segment begins and ends in its row, as given and kept inside of it.
struct extent {
  long first;
  long last;
  long start;
  long end;
  extent(device const long* borders, long segment, thread const segments& of) {
    const long row = segment / of.count, at = segment - row * of.count;
    device const long* ends = borders + (of.has_start ? row * (of.count + 1) + 1 : row * of.count);
    first = of.has_start || at > 0 ? ends[at - 1] : 0;
    last = ends[at];
    start = clamp(first, 0l, of.size);
    end = clamp(last, start, of.size);
  }
};

inline float combined(float a, float b, long reduction) {
  switch (reduction) {
    case MAXIMUM:
      return max_of::combine(a, b);
    case MINIMUM:
      return min_of::combine(a, b);
    case PRODUCT:
      return a * b;
    default:
      return a + b;
  }
}

inline float neutral(long reduction) {
  return reduction == MAXIMUM ? -INFINITY : reduction == MINIMUM ? INFINITY : reduction == PRODUCT ? 1.0f : 0.0f;
}

// The combination over the second coordinate of a group whose size there is a power of two, for each first one.
inline float over_column(float value, long reduction, threadgroup float* scratch, uint2 thread_at, uint2 size) {
  const uint place = thread_at.y * size.x + thread_at.x;
  scratch[place] = value;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  for (uint active = size.y / 2; active > 0; active /= 2) {
    if (thread_at.y < active) {
      scratch[place] = combined(scratch[place], scratch[place + active * size.x], reduction);
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
  }
  const float result = scratch[thread_at.x];
  threadgroup_barrier(mem_flags::mem_threadgroup);
  return result;
}

// A group a segment and up to 32 inner elements: neighbouring threads read neighbouring elements, the second
// coordinate runs along the segment. initial: a value that each segment starts with, and whether there is one.
template <typename T>
kernel void segment_reduce(
    device T* out [[buffer(0)]],
    device const T* data [[buffer(1)]],
    device const long* borders [[buffer(2)]],
    constant float* initial [[buffer(3)]],
    constant long* geometry [[buffer(4)]],
    REPORT_BUFFER(5) uint3 group [[threadgroup_position_in_grid]],
    uint3 in_group [[thread_position_in_threadgroup]],
    uint3 group_size [[threads_per_threadgroup]]) {
  threadgroup float scratch[256];
  const segments of(geometry);
  const long segment = long(group.z), row = segment / of.count;
  const extent at(borders, segment, of);
  const long i = long(group.x) * group_size.x + in_group.x;
  float total = neutral(of.reduction);
  if (i < of.inner) {
    device const T* x = data + row * of.size * of.inner + i;
    for (long j = at.start + in_group.y; j < at.end; j += group_size.y) {
      total = combined(total, float(x[j * of.inner]), of.reduction);
    }
  }
  total = over_column(total, of.reduction, scratch, in_group.xy, group_size.xy);
  if (i >= of.inner || in_group.y != 0) {
    return;
  }
  const long length = at.end - at.start;
  const bool starts = initial[1] != 0.0f;
  total = starts ? combined(initial[0], total, of.reduction) : total;
  if (of.reduction == MEAN) {
    total = length > 0 ? total / float(length) : starts ? total : NAN;
  }
  out[segment * of.inner + i] = T(total);
  if (of.checked && i == 0) {
    if (at.last < at.first) {
      REPORT("lengths contains negative value!");
    } else if (segment - row * of.count == of.count - 1 && at.last != of.size) {
      REPORT(
          "segment_reduce(): Expected all rows of lengths along axis to sum to data.size(lengths.dim()-1) when "
          "!unsafe.");
    }
  }
}

// The gradient of each number of a segment. Several largest ones share a positive gradient, and each get all of a
// negative one, as on the CPU. `gradient` is zero where no segment is.
template <typename T>
kernel void segment_reduce_backward(
    device T* gradient [[buffer(0)]],
    device const T* output_gradient [[buffer(1)]],
    device const T* output [[buffer(2)]],
    device const T* data [[buffer(3)]],
    device const long* borders [[buffer(4)]],
    constant float* initial [[buffer(5)]],
    constant long* geometry [[buffer(6)]],
    uint3 group [[threadgroup_position_in_grid]],
    uint3 in_group [[thread_position_in_threadgroup]],
    uint3 group_size [[threads_per_threadgroup]]) {
  threadgroup float scratch[256];
  const segments of(geometry);
  const long segment = long(group.z), row = segment / of.count;
  const extent at(borders, segment, of);
  const long i = long(group.x) * group_size.x + in_group.x;
  const bool works = i < of.inner;
  const long first = row * of.size * of.inner + (works ? i : 0), place = segment * of.inner + (works ? i : 0);
  const float dy = works ? float(output_gradient[place]) : 0.0f, y = works ? float(output[place]) : 0.0f;
  const bool is_extremum = of.reduction == MAXIMUM || of.reduction == MINIMUM;
  float equal = 0.0f;
  if (works && is_extremum) {
    for (long j = at.start + in_group.y; j < at.end; j += group_size.y) {
      const float x = float(data[first + j * of.inner]);
      equal += is_nan(x) || x == y ? 1.0f : 0.0f;
    }
  }
  equal = over_column(equal, SUM, scratch, in_group.xy, group_size.xy);
  if (!works) {
    return;
  }
  const float share = equal >= 2.0f && dy > 0.0f ? dy / equal : dy;
  const float start = initial[1] != 0.0f ? initial[0] : 1.0f;
  for (long j = at.start + in_group.y; j < at.end; j += group_size.y) {
    const float x = float(data[first + j * of.inner]);
    float dx = dy;
    if (is_extremum) {
      dx = is_nan(x) || x == y ? share : 0.0f;
    } else if (of.reduction == MEAN) {
      dx = dy / float(at.end - at.start);
    } else if (of.reduction == PRODUCT) {
      if (is_nan(x) || x == 0.0f) {
        float others = start;
        for (long k = at.start; k < at.end; ++k) {
          others *= k == j ? 1.0f : float(data[first + k * of.inner]);
        }
        dx = dy * others;
      } else {
        dx = dy * y / x;
      }
    }
    gradient[first + j * of.inner] = T(dx);
  }
}

#define SEGMENT_REDUCE(T) \
  template [[host_name("segment_reduce_" #T)]] kernel void segment_reduce<T>( \
      device T*, device const T*, device const long*, constant float*, constant long*, REPORT_TYPE uint3, uint3, \
      uint3); \
  template [[host_name("segment_reduce_backward_" #T)]] kernel void segment_reduce_backward<T>( \
      device T*, device const T*, device const T*, device const T*, device const long*, constant float*, \
      constant long*, uint3, uint3, uint3);
SEGMENT_REDUCE(float)
SEGMENT_REDUCE(half)
SEGMENT_REDUCE(bfloat)
