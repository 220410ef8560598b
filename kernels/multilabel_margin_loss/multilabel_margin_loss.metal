#include "shared/reduce.metal"
#include "shared/report.metal"

struct smaller {
  static int combine(int a, int b) { return a < b ? a : b; }
};

// What ends the labels of a row.
constexpr constant long END = -1;

// How many labels a row of targets has: those before the first negative one. `least` becomes the smallest number that
// the thread has seen on the way, which is below END where the CPU refuses the targets.
inline int label_count(
    device const long* target,
    int classes,
    thread long& least,
    threadgroup int* scratch,
    uint thread_index,
    uint threads) {
  int first = classes;
  least = END;
  for (int k = int(thread_index); k < classes; k += int(threads)) {
    if (target[k] < 0) {
      first = k;
      least = target[k];
      break;
    }
  }
  return reduce_group<smaller>(first, scratch, thread_index, threads);
}

// Labels of a row that all threads keep at hand.
constexpr constant int NEAR = 64;

inline float distance_below(float base, float x) {
  const float z = base + x;
  return z > 0.0f ? z : 0.0f;
}

// A group a row: marks the labels in `is_target`, then sums max(0, 1 - x[label] + x[j]) over all labels and all j
// that are no label. The threads share the j. Labels out of range are passed over.
// Rows of few labels, as nearly all are, keep these and their distances in threadgroup memory: a thread then reads each of
// its classes once, and four at a time. Else every class reads every label from memory, twice.
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
  threadgroup int near[NEAR];
  threadgroup float bases[NEAR];
  const int classes = int(class_count);
  const ulong offset = ulong(row) * ulong(classes);
  device const T* x = input + offset;
  device const long* labels = target + offset;
  device T* marks = is_target + offset;
  long least;
  const int count = label_count(labels, classes, least, counts, thread_index, threads);
  if (least < END) {
    REPORT("multilabel_margin_loss(): target ", least, " is out of range of ", long(classes), " classes");
  }
  for (int k = int(thread_index); k < count; k += int(threads)) {
    const long label = labels[k];
    const bool valid = label < long(classes);
    if (!valid) {
      REPORT("multilabel_margin_loss(): target ", label, " is out of range of ", long(classes), " classes");
    }
    if (k < NEAR) {
      near[k] = valid ? int(label) : -1;
      bases[k] = valid ? 1.0f - float(x[label]) : -INFINITY;
    }
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  float sum = 0.0f;
  if (count <= NEAR) {
    constexpr uint AHEAD = 4;
    for (int first = int(thread_index); first < classes; first += int(AHEAD * threads)) {
      float ahead[AHEAD];
      for (uint k = 0; k < AHEAD; ++k) {
        const int j = first + int(k * threads);
        ahead[k] = j < classes ? float(x[j]) : -INFINITY;
      }
      for (uint k = 0; k < AHEAD; ++k) {
        const int j = first + int(k * threads);
        bool marked = false;
        float below = 0.0f;
        for (int l = 0; l < count; ++l) {
          marked = marked || near[l] == j;
          below += distance_below(bases[l], ahead[k]);
        }
        sum += marked ? 0.0f : below;
        if (j < classes) {
          marks[j] = T(marked ? 1 : 0);
        }
      }
    }
  } else {
    for (int j = int(thread_index); j < classes; j += int(threads)) {
      bool marked = false;
      for (int k = 0; k < count && !marked; ++k) {
        marked = labels[k] == long(j);
      }
      marks[j] = T(marked ? 1 : 0);
      for (int k = 0; k < count && !marked; ++k) {
        const long label = labels[k];
        sum += label < long(classes) ? distance_below(1.0f - float(x[label]), float(x[j])) : 0.0f;
      }
    }
  }
  sum = sum_group(sum, sums, thread_index, threads);
  if (thread_index == 0) {
    losses[row] = sum / float(classes);
  }
}

// The gradient of j: for a class that is not a label, how many labels it comes too close to; for a label, minus the number
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
    REPORT_BUFFER(7) uint2 group [[threadgroup_position_in_grid]],
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
  long least;
  const int count = label_count(labels, classes, least, counts, thread_index, threads);
  if (least < END) {
    REPORT("multilabel_margin_loss_backward(): target ", least, " is out of range of ", long(classes), " classes");
  }
  const float scale = share / float(classes) * float(output_gradient[shape[1] != 0 ? row : 0]);
  for (int j = int(thread_index); j < classes; j += int(threads)) {
    float hits = 0.0f;
    if (!(float(marks[j]) >= 0.0f && float(marks[j]) <= 1.0f)) {
      REPORT("multilabel_margin_loss_backward(): argument #5 'is_target' is out of range");
    }
    if (j < count && labels[j] >= long(classes)) {
      REPORT(
          "multilabel_margin_loss_backward(): target ", labels[j], " is out of range of ", long(classes), " classes");
    }
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
      constant long*, REPORT_TYPE uint2, uint, uint2);
MULTILABEL_MARGIN_LOSS(float)
MULTILABEL_MARGIN_LOSS(half)
MULTILABEL_MARGIN_LOSS(bfloat)
