#include "shared/reduce.metal"
#include "shared/report.metal"

// The distance by which class j comes too close to the target's: margin - x[target] + x[j].
// A group has a row of the contiguous input. A target out of range makes the row's result NaN: nothing is read there.
#define REPORT_TARGET(name) \
  REPORT(name "(): target ", target[row], " of row ", long(row), " is out of range of ", classes, " classes")

inline float penalty(float z, bool squared) { return z > 0.0f ? (squared ? z * z : z) : 0.0f; }

// A power of two that the penalties are multiplied by, so that their sum is a number where their mean is one.
inline float term_scale(long classes) { return ldexp(1.0f, int(clz(uint(classes))) - 32); }

// losses[row] = share * weight[target] / classes * sum of the penalties of all other classes
template <typename T>
kernel void multi_margin_loss(
    device float* losses [[buffer(0)]],
    device const T* input [[buffer(1)]],
    device const long* target [[buffer(2)]],
    device const T* weight [[buffer(3)]],
    constant float* p [[buffer(4)]],      // margin, 2 for squares, and the share of a row in the result
    constant long* shape [[buffer(5)]],   // classes, and whether there are weights
    REPORT_BUFFER(6) uint2 group [[threadgroup_position_in_grid]],
    uint thread_index [[thread_index_in_threadgroup]],
    uint2 group_size [[threads_per_threadgroup]]) {
  const uint row = group.y;
  const uint threads = group_size.x;
  threadgroup float scratch[256];
  const long classes = shape[0];
  device const T* x = input + ulong(row) * ulong(classes);
  // A thread's first elements are on their way before the target is: else a row waits for memory three times in turn. Of
  // those that follow, as many are on their way at a time.
  constexpr uint AHEAD = 8;
  const uint step = AHEAD * threads, last = uint(classes);
  float ahead[AHEAD];
  for (uint k = 0; k < AHEAD; ++k) {
    const uint j = thread_index + k * threads;
    ahead[k] = j < last ? float(x[j]) : -INFINITY;
  }
  const long chosen = target[row];
  const bool valid = chosen >= 0 && chosen < classes;
  if (!valid && thread_index == 0) {
    REPORT_TARGET("multi_margin_loss");
  }
  const float factor = term_scale(classes);
  float sum = 0.0f;
  if (valid) {
    const uint own = uint(chosen);
    const float base = p[0] - float(x[own]);
    const bool squares = p[1] == 2.0f;
    for (uint k = 0; k < AHEAD; ++k) {
      sum += thread_index + k * threads == own ? 0.0f : factor * penalty(base + ahead[k], squares);
    }
    uint j = thread_index + step;
    for (; j + (step - threads) < last; j += step) {
      for (uint k = 0; k < AHEAD; ++k) {
        ahead[k] = float(x[j + k * threads]);
      }
      for (uint k = 0; k < AHEAD; ++k) {
        sum += j + k * threads == own ? 0.0f : factor * penalty(base + ahead[k], squares);
      }
    }
    for (; j < last; j += threads) {
      sum += j == own ? 0.0f : factor * penalty(base + float(x[j]), squares);
    }
  }
  sum = sum_group(sum, scratch, thread_index, threads);
  if (thread_index == 0) {
    const float scale = valid ? (shape[1] != 0 ? float(weight[chosen]) : 1.0f) * p[2] / (factor * float(classes)) : NAN;
    // A NaN for a weight counts where there is something to weigh, as on the CPU.
    losses[row] = valid && sum == 0.0f ? 0.0f : sum * scale;
  }
}

// The gradient of class j is that of its penalty; the target's is minus the sum of all of them.
template <typename T>
kernel void multi_margin_loss_backward(
    device T* gradient [[buffer(0)]],
    device const T* input [[buffer(1)]],
    device const long* target [[buffer(2)]],
    device const T* weight [[buffer(3)]],
    device const T* output_gradient [[buffer(4)]],
    constant float* p [[buffer(5)]],      // margin, 2 for squares, and the share of a row in the result
    constant long* shape [[buffer(6)]],   // classes, whether there are weights, whether each row has its gradient
    REPORT_BUFFER(7) uint2 group [[threadgroup_position_in_grid]],
    uint thread_index [[thread_index_in_threadgroup]],
    uint2 group_size [[threads_per_threadgroup]]) {
  const uint row = group.y;
  const uint threads = group_size.x;
  threadgroup float scratch[256];
  const long classes = shape[0], chosen = target[row];
  device const T* x = input + ulong(row) * ulong(classes);
  device T* out = gradient + ulong(row) * ulong(classes);
  const bool valid = chosen >= 0 && chosen < classes;
  if (!valid && thread_index == 0) {
    REPORT_TARGET("multi_margin_loss_backward");
  }
  const float scale = valid ? (shape[1] != 0 ? float(weight[chosen]) : 1.0f) * p[2] / float(classes) : NAN;
  // It multiplies the classes that are far enough away, too: where it is not finite they have no gradient of zero.
  const float from_output = float(output_gradient[shape[2] != 0 ? row : 0]);
  const float base = valid ? p[0] - float(x[chosen]) : 0.0f;
  float sum = 0.0f;
  for (long j = thread_index; j < classes; j += threads) {
    const float z = base + float(x[j]);
    const float slope = z > 0.0f ? scale * (p[1] == 2.0f ? 2.0f * z : 1.0f) : (valid ? 0.0f : NAN);
    if (j != chosen) {
      out[j] = T(slope * from_output);
      sum += slope;
    }
  }
  sum = sum_group(sum, scratch, thread_index, threads);
  if (thread_index == 0 && valid) {
    out[chosen] = T(-sum * from_output);
  }
}

#define MULTI_MARGIN_LOSS(T) \
  template [[host_name("multi_margin_loss_" #T)]] kernel void multi_margin_loss<T>( \
      device float*, device const T*, device const long*, device const T*, constant float*, constant long*, \
      REPORT_TYPE uint2, uint, uint2); \
  template [[host_name("multi_margin_loss_backward_" #T)]] kernel void multi_margin_loss_backward<T>( \
      device T*, device const T*, device const long*, device const T*, device const T*, constant float*, \
      constant long*, REPORT_TYPE uint2, uint, uint2);
MULTI_MARGIN_LOSS(float)
MULTI_MARGIN_LOSS(half)
MULTI_MARGIN_LOSS(bfloat)
