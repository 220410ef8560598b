#include "shared/reduce.metal"
#include "shared/report.metal"

struct smaller {
  static int combine(int a, int b) { return a < b ? a : b; }
};

// How many labels a row of targets has: those before the first negative one.
inline int label_count(
    device const long* target, int classes, threadgroup int* scratch, uint thread_index, uint threads) {
  int first = classes;
  for (int k = int(thread_index); k < classes; k += int(threads)) {
    if (target[k] < 0) {
      first = k;
      break;
    }
  }
  return reduce_group<smaller>(first, scratch, thread_index, threads);
}

// A group a row: marks the labels in `is_target`, then sums max(0, 1 - x[label] + x[j]) over all labels and all j
// that are no label. The threads share the j. Labels out of range are passed over.
template <typename T>
kernel void multilabel_margin_loss(
    device float* losses [[buffer(0)]],
    device T* is_target [[buffer(1)]],
    device const T* input [[buffer(2)]],
    device const long* target [[buffer(3)]],
    constant long& class_count [[buffer(4)]],
    REPORT_BUFFER(5) uint2 group [[threadgroup_position_in_grid]],
    uint thread_index [[thread_index_in_threadgroup]],
    uint2 group_size [[threads_per_threadgroup]]) {
  const uint row = group.y;
  const uint threads = group_size.x;
  threadgroup int counts[256];
  threadgroup float sums[256];
  const int classes = int(class_count);
  const ulong offset = ulong(row) * ulong(classes);
  device const T* x = input + offset;
  device const long* labels = target + offset;
  device T* marks = is_target + offset;
  const int count = label_count(labels, classes, counts, thread_index, threads);
  for (int j = int(thread_index); j < classes; j += int(threads)) {
    bool marked = false;
    for (int k = 0; k < count && !marked; ++k) {
      marked = labels[k] == long(j);
    }
    marks[j] = T(marked ? 1 : 0);
    if (j < count && labels[j] >= long(classes)) {
      REPORT("multilabel_margin_loss(): target ", labels[j], " is out of range of ", long(classes), " classes");
    }
  }
  float sum = 0.0f;
  for (int j = int(thread_index); j < classes; j += int(threads)) {
    if (float(marks[j]) != 0.0f) {
      continue;
    }
    for (int k = 0; k < count; ++k) {
      const long label = labels[k];
      const float z = label < long(classes) ? 1.0f - float(x[label]) + float(x[j]) : 0.0f;
      sum += z > 0.0f ? z : 0.0f;
    }
  }
  sum = sum_group(sum, sums, thread_index, threads);
  if (thread_index == 0) {
    losses[row] = sum / float(classes);
  }
}

// The gradient of j: for a class that is no label, how many labels it comes too close to; for a label, minus the number
// of classes that come too close to it, as often as the label is listed.
template <typename T>
kernel void multilabel_margin_loss_backward(
    device T* gradient [[buffer(0)]],
    device const T* input [[buffer(1)]],
    device const long* target [[buffer(2)]],
    device const T* is_target [[buffer(3)]],
    device const T* output_gradient [[buffer(4)]],
    constant float& share [[buffer(5)]],  // of a row in the result
    constant long* shape [[buffer(6)]],   // classes, whether each row has its gradient
    uint2 group [[threadgroup_position_in_grid]],
    uint thread_index [[thread_index_in_threadgroup]],
    uint2 group_size [[threads_per_threadgroup]]) {
  const uint row = group.y;
  const uint threads = group_size.x;
  threadgroup int counts[256];
  const int classes = int(shape[0]);
  const ulong offset = ulong(row) * ulong(classes);
  device const T* x = input + offset;
  device const T* marks = is_target + offset;
  device const long* labels = target + offset;
  const int count = label_count(labels, classes, counts, thread_index, threads);
  const float scale = share / float(classes) * float(output_gradient[shape[1] != 0 ? row : 0]);
  for (int j = int(thread_index); j < classes; j += int(threads)) {
    float hits = 0.0f;
    if (float(marks[j]) == 0.0f) {
      for (int k = 0; k < count; ++k) {
        const long label = labels[k];
        hits += label < long(classes) && 1.0f - float(x[label]) + float(x[j]) > 0.0f ? 1.0f : 0.0f;
      }
    } else {
      float listed = 0.0f;
      for (int k = 0; k < count; ++k) {
        listed += labels[k] == long(j) ? 1.0f : 0.0f;
      }
      for (int i = 0; i < classes; ++i) {
        hits -= float(marks[i]) == 0.0f && 1.0f - float(x[j]) + float(x[i]) > 0.0f ? listed : 0.0f;
      }
    }
    gradient[offset + ulong(j)] = T(hits * scale);
  }
}

#define MULTILABEL_MARGIN_LOSS(T) \
  template [[host_name("multilabel_margin_loss_" #T)]] kernel void multilabel_margin_loss<T>( \
      device float*, device T*, device const T*, device const long*, constant long&, REPORT_TYPE uint2, uint, uint2); \
  template [[host_name("multilabel_margin_loss_backward_" #T)]] kernel void multilabel_margin_loss_backward<T>( \
      device T*, device const T*, device const long*, device const T*, device const T*, constant float&, \
      constant long*, uint2, uint, uint2);
MULTILABEL_MARGIN_LOSS(float)
MULTILABEL_MARGIN_LOSS(half)
MULTILABEL_MARGIN_LOSS(bfloat)
